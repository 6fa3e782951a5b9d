"""Shows exceptions to people: their messages, notes and tracebacks, with all secrets hidden.

Logs of every format, kept log lines and stored errors use these functions.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, ParamSpec, cast

from msgspec import Struct

from ropewalk.domain.redaction import joined, redacted, shown_args
from ropewalk.domain.user_calls import guarded

P = ParamSpec("P")


def error_text(error: BaseException, keys: Collection[str] = ()) -> str:
    """Returns the message of an exception. If its arguments contain secrets, the arguments with the secrets hidden take
    the place of the message."""
    shown = shown_args(error, keys)
    return str(error) if shown is error.args else joined(shown)


def traceback_text(error: BaseException, keys: Collection[str] = ()) -> str:
    """Returns the traceback of an exception and of those that led to it, with their messages as in `error_text`."""
    return "".join(traceback.format_exception(shown_error(error, keys)))


def safe_error_text(error: BaseException, keys: Collection[str] = ()) -> str:
    """Returns `error_text`, or the name of the class if the text is empty. This never raises: if the exception cannot
    be turned into text, the answer says so."""
    return _guarded_text(error_text, error, keys) or type(error).__name__


def _guarded_text(text: Callable[P, str], *args: P.args, **kwargs: P.kwargs) -> str:
    """Calls a function that makes a text with the help of user code, which may raise anything."""
    try:
        return guarded(text, *args, **kwargs)
    except Exception as broken:
        return f"<its message raised {type(broken).__name__}>"


def shown_error(error: BaseException, keys: Collection[str] = ()) -> BaseException:
    """Returns the exception itself if neither it nor any exception that it came from or contains has a secret.

    Otherwise returns a stand-in for formatting. It has the name, the traceback and the links of the exception, and its
    message and notes with the secrets hidden, but not its class, its arguments or its attributes.
    """
    faces = {id(each): _face(each, keys) for each in _chain(error)}
    if not any(face.hides for face in faces.values()):
        return error
    stands = {key: _stand_in(face) for key, face in faces.items()}
    for key, stand in stands.items():
        _link(stand, faces[key], stands)
    return stands[id(error)]


class _Face(Struct, frozen=True):
    """The parts of one exception that are shown."""

    error: BaseException
    message: str
    notes: Any
    hides: bool
    """Whether the message or the notes differ from those of the exception, because secrets are hidden in them."""


def _face(error: BaseException, keys: Collection[str]) -> _Face:
    args, notes = shown_args(error, keys), getattr(error, "__notes__", None)
    shown = redacted(notes, keys)
    hides = args is not error.args
    message = joined(args) if hides else _guarded_text(str, error)
    return _Face(error, message, shown, hides or shown is not notes)


def _stand_in(face: _Face) -> BaseException:
    error, kind = face.error, type(face.error)
    of_group = isinstance(error, BaseExceptionGroup)
    plain, grouped = (
        (Exception, ExceptionGroup) if isinstance(error, Exception) else (BaseException, BaseExceptionGroup)
    )
    base = cast("type", grouped if of_group else plain)
    parts: dict[str, object] = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    if of_group:
        parts |= {"exceptions": (), "__str__": lambda _self: face.message}  # pyright: ignore[reportUnknownLambdaType]
    made: Any = type(kind.__name__, (base,), parts)
    return cast("BaseException", made(face.message, [Exception()]) if of_group else made(face.message))


def _link(stand: Any, face: _Face, stands: Mapping[int, BaseException]) -> None:
    error, notes = face.error, face.notes
    stand.__cause__ = None if error.__cause__ is None else stands[id(error.__cause__)]
    stand.__context__ = None if error.__context__ is None else stands[id(error.__context__)]
    stand.__suppress_context__ = error.__suppress_context__
    stand.__traceback__ = error.__traceback__
    if notes is not None:
        stand.__notes__ = notes
    if isinstance(error, BaseExceptionGroup):
        inside = cast("BaseExceptionGroup[BaseException]", error).exceptions
        stand.exceptions = tuple(stands[id(each)] for each in inside)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yields the exception, those that it came from, and those in groups, each once."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [each.__cause__, each.__context__]
        if isinstance(each, BaseExceptionGroup):
            waiting += cast("BaseExceptionGroup[BaseException]", each).exceptions
