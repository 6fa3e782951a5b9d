"""Exceptions as people may see them: their messages, notes and tracebacks, with what is secret in them hidden.

Logs of every format, kept lines and stored errors go through here.
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
    """The message of an exception; where its arguments hold secrets, those arguments with the secrets hidden."""
    shown = shown_args(error, keys)
    return str(error) if shown is error.args else joined(shown)


def traceback_text(error: BaseException, keys: Collection[str] = ()) -> str:
    """The traceback of an exception and of those it came from, with the same messages as `error_text`."""
    return "".join(traceback.format_exception(shown_error(error, keys)))


def told(error: BaseException, keys: Collection[str] = ()) -> str:
    """The same as `error_text`, or the name of the class where that is empty. A message that raises is told, too."""
    return _told(error_text, error, keys) or type(error).__name__


def _told(text: Callable[P, str], *args: P.args, **kwargs: P.kwargs) -> str:
    """A text that functions of the user's make, which may raise anything."""
    try:
        return guarded(text, *args, **kwargs)
    except Exception as broken:
        return f"<its message raised {type(broken).__name__}>"


def shown_error(error: BaseException, keys: Collection[str] = ()) -> BaseException:
    """The exception itself where nothing is to be hidden in it, nor in any that it came from or contains.

    Otherwise a stand-in, for whoever formats it: it has the name, the traceback and the links of the exception, and its
    message and notes with the secrets hidden; but not its class, its arguments or its attributes.
    """
    faces = {id(each): _face(each, keys) for each in _chain(error)}
    if not any(face.hides for face in faces.values()):
        return error
    stands = {key: _stand_in(face) for key, face in faces.items()}
    for key, stand in stands.items():
        _link(stand, faces[key], stands)
    return stands[id(error)]


class _Face(Struct, frozen=True):
    """What is shown of one exception."""

    error: BaseException
    message: str
    notes: Any
    hides: bool


def _face(error: BaseException, keys: Collection[str]) -> _Face:
    args, notes = shown_args(error, keys), getattr(error, "__notes__", None)
    shown = redacted(notes, keys)
    hides = args is not error.args
    message = joined(args) if hides else _told(str, error)
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
    """The exception, those it came from, and those in groups; each once."""
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
