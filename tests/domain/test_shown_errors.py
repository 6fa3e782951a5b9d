"""Exceptions as people see them: whatever an exception was made with, what is secret in it is hidden."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from ropewalk import Secret
from ropewalk.domain.redaction import HIDDEN, redacted
from ropewalk.domain.shown_errors import error_text, safe_error_text, shown_error, traceback_text


@dataclass(frozen=True)
class Payment:
    card: Annotated[str, Secret]


@dataclass
class Declined(Exception):
    reason: str
    card: Annotated[str, Secret]


class Refused(Exception):
    def __init__(self, user: str, password: str) -> None:
        super().__init__(f"refused {user}", password)
        self.user, self.password = user, password


class Mute(Exception):
    def __str__(self) -> str:
        raise SystemExit


def raised(error: BaseException) -> BaseException:
    """The exception with a traceback."""
    try:
        raise error
    except BaseException as caught:
        return caught


def from_another(error: BaseException) -> BaseException:
    try:
        try:
            raise error
        except BaseException as first:
            raise RuntimeError("what follows") from first
    except RuntimeError as caught:
        return caught


def while_handling(error: BaseException) -> BaseException:
    try:
        try:
            raise error
        except BaseException:
            raise RuntimeError("what follows")  # noqa: B904 # the context is what is tested
    except RuntimeError as caught:
        return caught


def noted(error: BaseException) -> BaseException:
    plain = raised(ValueError("plain"))
    notes: list[Any] = ["a note", error.args]
    plain.__notes__ = notes
    return plain


SECRET = ValueError("for\nada", Payment("4111"), {"iban": "DE99"})
SHOWN = f"for\nada, {{'card': '{HIDDEN}'}}, {{'iban': '{HIDDEN}'}}"


@pytest.mark.parametrize(
    "error",
    [
        raised(SECRET),
        from_another(SECRET),
        while_handling(SECRET),
        raised(ExceptionGroup("both", [ExceptionGroup("inner", [SECRET]), KeyError("k")])),
        raised(BaseExceptionGroup("both", [KeyboardInterrupt({"iban": "DE99"}, Payment("4111"))])),
        noted(SECRET),
        raised(Declined("no", "4111")),
        raised(Declined("no", card="4111")),
        raised(Refused("ada", "4111")),
    ],
    ids=["itself", "cause", "context", "in groups", "base group", "note", "marked field", "keyword", "named attribute"],
)
def test_no_traceback_shows_a_secret(error: BaseException) -> None:
    """In a group the lines of a message are indented, and a note may be any object."""
    texts = [
        traceback_text(error, ["iban"]),
        error_text(error, ["iban"]),
        safe_error_text(error, ["iban"]),
        str(redacted({"error": error, "all": [error]}, ["iban"])),
        "".join(traceback.format_exception(shown_error(error, ["iban"]))),
    ]
    assert not [text for text in texts if "4111" in text or "DE99" in text]


def test_what_formats_the_stand_in_sees_the_exception() -> None:
    error = from_another(SECRET)
    assert isinstance(error, RuntimeError)
    error.add_note("a note")
    stand = shown_error(error, ["iban"])
    text = "".join(traceback.format_exception(stand))
    assert f"ValueError: {SHOWN}" in text and "RuntimeError: what follows\na note" in text
    assert "The above exception was the direct cause" in text and "in from_another" in text
    assert isinstance(stand.__cause__, Exception) and type(stand.__cause__).__name__ == "ValueError"
    group = shown_error(ExceptionGroup("both", [SECRET, error]))
    assert isinstance(group, ExceptionGroup) and [type(each).__name__ for each in group.exceptions] == [
        "ValueError",
        "RuntimeError",
    ]
    own = shown_error(raised(Declined("no", "4111")))
    assert traceback.format_exception(own)[-1] == f"{__name__}.Declined: no, {HIDDEN}\n"
    assert not isinstance(shown_error(KeyboardInterrupt(Payment("4111"))), Exception)


@pytest.mark.parametrize(
    "error", [raised(ValueError("plain")), from_another(KeyError("k")), ExceptionGroup("g", [OSError(2, "no")])]
)
def test_an_exception_with_nothing_to_hide_is_shown_as_it_is(error: BaseException) -> None:
    assert shown_error(error, ["iban"]) is error
    assert redacted(error) is error


def test_exceptions_that_lead_back_to_themselves() -> None:
    one, other = ValueError(Payment("4111")), ValueError("other")
    one.__context__, other.__context__ = other, one
    stand = shown_error(other)
    assert stand.__context__ is not None and stand.__context__.__context__ is stand
    assert "4111" not in "".join(traceback.format_exception(stand))
    held: Any = ValueError()
    held.args = (held, Payment("4111"))
    assert "4111" not in error_text(held)


def test_a_message_that_raises_is_told_of() -> None:
    assert safe_error_text(Mute()) == "<its message raised UnexpectedExit>"
    assert safe_error_text(ValueError()) == "ValueError"
    try:
        raise SECRET from Mute()
    except ValueError as error:
        assert "4111" not in traceback_text(error)
