"""What messages of errors quote of arguments that are secret: neither values, nor keys, nor objects given to Abort."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest

from ropewalk import Abort, Defer, InvalidInput, JobFailed, Retry, Secret, job
from tests.apps import MakeApp

HIDDEN_TEXT = "hunter2"


class Kind(enum.Enum):
    A = "a"


@dataclasses.dataclass
class Card:
    number: Annotated[str, Secret]


@dataclasses.dataclass
class Checked:
    number: str

    def __post_init__(self) -> None:
        raise ValueError(f"{self.number} is no number")


def taking(annotation: Any) -> Any:
    async def handler(vault: Any) -> None: ...

    handler.__annotations__["vault"] = Annotated[annotation, Secret]
    return job(name="handler")(handler)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Kind, HIDDEN_TEXT),
        (Literal["a"], HIDDEN_TEXT),
        (Decimal, HIDDEN_TEXT),
        (Checked, {"number": HIDDEN_TEXT}),
        (Card, {"number": "1", HIDDEN_TEXT: 1}),
        (dict[str, object], {HIDDEN_TEXT: object()}),
        (list[dict[str, object]], [{HIDDEN_TEXT: {"x": object()}}]),
        (dict[str, int], {HIDDEN_TEXT: "x"}),
        (dict[str, Kind], {HIDDEN_TEXT: Kind.A, "x": HIDDEN_TEXT}),
    ],
)
def test_what_does_not_fit_is_not_quoted(annotation: Any, value: object) -> None:
    secret, named = taking(annotation), job(name="named")(_named(annotation))
    for build in (lambda: secret(value), lambda: secret.from_arguments({"vault": value}), lambda: named(value)):
        with pytest.raises(InvalidInput, match=r"argument '(vault|password)'") as refused:
            build()
        assert HIDDEN_TEXT not in f"{refused.value} {refused.value.__cause__}"


def _named(annotation: Any) -> Any:
    async def handler(password: Any) -> None: ...

    handler.__annotations__["password"] = annotation
    return handler


def test_json_that_does_not_fit_is_not_quoted() -> None:
    with pytest.raises(InvalidInput, match="argument 'vault'") as refused:
        taking(Kind).arguments_from_json(f'{{"vault":"{HIDDEN_TEXT}"}}')
    assert HIDDEN_TEXT not in f"{refused.value} {refused.value.__cause__}"


def test_the_path_to_a_key_ends_at_the_secret() -> None:
    with pytest.raises(InvalidInput, match=r"at \$\[\.\.\.\]$"):
        taking(dict[str, object])({"key": object()})


def test_what_is_not_secret_is_still_quoted() -> None:
    @job
    async def plain(kind: Kind) -> None: ...

    with pytest.raises(InvalidInput, match=r"argument 'kind': invalid enum value 'b'"):
        plain.arguments_from_json('{"kind":"b"}')


class Ended(StopIteration):
    """A thread cannot hand over a StopIteration as it is."""


RAISED: dict[str, Callable[[], BaseException]] = {
    "abort": lambda: Abort(Card(HIDDEN_TEXT)),  # type: ignore[arg-type] # what users may do all the same
    "abort with a dict": lambda: Abort({"password": HIDDEN_TEXT}),  # type: ignore[arg-type] # what users may do
    "abort with an error": lambda: Abort(ValueError(Card(HIDDEN_TEXT))),
    "retry": lambda: Retry(Card(HIDDEN_TEXT)),  # type: ignore[arg-type] # what users may do all the same
    "value": lambda: ValueError(Card(HIDDEN_TEXT)),
    "stop": lambda: Ended(Card(HIDDEN_TEXT)),
    "defer": lambda: Defer(at=Card(HIDDEN_TEXT)),  # type: ignore[arg-type] # what users may do all the same
    "after": lambda: Retry(after=Card(HIDDEN_TEXT)),  # type: ignore[arg-type] # what users may do all the same
}


@job(max_attempts=1)
def fail(how: str) -> None:
    raise RAISED[how]()


@pytest.mark.parametrize("how", RAISED)
async def test_an_object_in_an_exception_is_shown_without_its_secrets(make_app: MakeApp, how: str) -> None:
    app = make_app(fail)
    async with app.running():
        handle = await app.enqueue(fail(how))
        with pytest.raises(JobFailed) as failed:
            await handle.result(timeout=10)
        history = await app.history(handle.id)
        info, why = await app.get(handle.id), await app.why(handle.id)
    assert "[hidden]" in str(failed.value)
    assert HIDDEN_TEXT not in f"{failed.value} {info} {info.error} {history} {why}"
