"""From the bytes of a request to the typed values that a route declares; what does not fit is named by its field."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct, structs

from ropewalk.http.errors import DetailCode, ErrorCode, ErrorDetail, HttpError, invalid
from ropewalk.http.request import Request

T = TypeVar("T")

DEPTH_MAX: Final = 64
"""How deep the arrays and objects of a body may be nested."""
HEADER_CHARS_MAX: Final = 256
_HEADER_VALUE: Final = re.compile(rf"[!-~]{{1,{HEADER_CHARS_MAX}}}")
_TOKENS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)
_AT: Final = re.compile(r" - at `(?:key` in `)?\$(?P<path>[^`]*)`$")
_MISSING: Final = re.compile(r"Object missing required field `(?P<name>[^`]*)`")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<name>[^`]*)`")
_RANGE: Final = re.compile(r"Expected `[^`]*` (?:[<>]=?|of length|matching|that's a multiple)|Invalid enum value")


def check_headers(request: Request, names: Iterable[str]) -> None:
    """Raises HttpError for a header that a route reads, if it has anything but visible ASCII characters: proxies do not
    agree about what else a header may carry."""
    for name in names:
        value = request.headers.get(name.lower())
        if value is not None and not _HEADER_VALUE.fullmatch(value):
            told = f"the header {name} takes 1 to {HEADER_CHARS_MAX} visible ASCII characters"
            raise invalid(told, field=name)


async def read_body(request: Request, shape: type[T]) -> T:
    """The body of a request; one that is left out stands for a shape without fields. Raises HttpError."""
    data = await request.body()
    if not data and may_be_left_out(shape):
        return shape()
    check_media_type(request)
    return from_json(data, shape)


def may_be_left_out(shape: type[Any]) -> bool:
    """Whether a body may be left out: every field of its Struct has a default."""
    return issubclass(shape, Struct) and not any(field.required for field in structs.fields(shape))


def check_media_type(request: Request) -> None:
    given = request.headers.get("content-type", "application/json").split(";", 1)[0].strip().lower()
    if given != "application/json":
        raise HttpError(
            ErrorCode.UNSUPPORTED_MEDIA_TYPE,
            f"the body is {given[:80]!r}: send application/json",
            headers={"Accept": "application/json"},
        )


def from_json(data: bytes, shape: type[T]) -> T:
    """Raises HttpError naming what does not fit."""
    if not data.strip():
        raise invalid("the body is empty: send a JSON value", field="body", code=DetailCode.NOT_JSON)
    _check_depth(data)
    try:
        return msgspec.json.decode(data, type=shape)
    except msgspec.ValidationError as error:
        raise misfit(error) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise invalid(f"the body is not JSON: {error}", field="body", code=DetailCode.NOT_JSON) from error


def from_query(query: bytes, shape: type[T]) -> T:
    """The parameters of a query string. A field that is a list may be repeated, every other one may not."""
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=200)
    except (UnicodeDecodeError, ValueError) as error:
        raise invalid("the query string is not URL-encoded UTF-8, or has over 200 parameters", field="query") from error
    lists, words = _lists_of(shape), _words_of(shape)
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in words and not words[name].match(value):
            said = f"{name}={value[:40]!r} is not {_WORDS[words[name]]}"
            raise invalid(said, field=name, code=DetailCode.WRONG_TYPE)
        if name in lists:
            found.setdefault(name, []).append(value)
        elif name in found:
            raise invalid(f"the query parameter {name!r} is given twice", field=name)
        else:
            found[name] = value
    try:
        return msgspec.convert(found, shape, strict=False)
    except msgspec.ValidationError as error:
        raise misfit(error, within="query") from error


def misfit(error: msgspec.ValidationError, *, within: str = "") -> HttpError:
    """What a value does not fit, by the words of msgspec."""
    text = str(error)
    at = _AT.search(text)
    path = "" if at is None else at["path"].lstrip(".")
    problem = text if at is None else text[: at.start()]
    missing, unknown = _MISSING.match(problem), _UNKNOWN.match(problem)
    if missing is not None:
        field, code, message = _joined(path, missing["name"]), DetailCode.MISSING, "is required"
    elif unknown is not None:
        field, code, message = _joined(path, unknown["name"]), DetailCode.UNKNOWN_FIELD, "is not known here"
    else:
        field, message = path or within or "body", problem[:1].lower() + problem[1:]
        code = DetailCode.OUT_OF_RANGE if _RANGE.match(problem) else DetailCode.WRONG_TYPE
    said = f"{field}: {message}"
    return HttpError(ErrorCode.INVALID_REQUEST, said, details=[ErrorDetail(field, code, message)])


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _check_depth(data: bytes) -> None:
    """Measured before decoding, because the decoder raises RecursionError only at about 1,000 levels."""
    if data.count(b"[") + data.count(b"{") <= DEPTH_MAX:
        return
    depth = 0
    for token in _TOKENS.finditer(data):
        first = data[token.start()]
        if first in b"[{":
            depth += 1
            if depth > DEPTH_MAX:
                raise invalid(
                    f"the body is nested deeper than {DEPTH_MAX} levels", field="body", code=DetailCode.TOO_DEEP
                )
        elif first in b"]}":
            depth -= 1


def _lists_of(shape: type[Any]) -> frozenset[str]:
    """The fields of a Struct that take several values."""
    found = _LISTS.get(shape)
    if found is None:
        hints = get_type_hints(shape) if issubclass(shape, Struct) else {}
        found = _LISTS[shape] = frozenset(name for name, hint in hints.items() if _takes_several(hint))
    return found


def _takes_several(hint: Any) -> bool:
    origin = get_origin(hint)
    if origin in (list, tuple, set, frozenset):
        return True
    return any(_takes_several(each) for each in get_args(hint))


def _words_of(shape: type[Any]) -> dict[str, re.Pattern[str]]:
    """What the text of a field must look like where the decoder takes more than the document says: it reads numbers as
    instants and as truth values, and 1e2 as a whole number."""
    found = _PATTERNS.get(shape)
    if found is None:
        hints = get_type_hints(shape) if issubclass(shape, Struct) else {}
        found = _PATTERNS[shape] = {}
        for name, hint in hints.items():
            kinds = {hint, *get_args(hint)}
            if datetime in kinds:
                found[name] = _INSTANT
            elif bool in kinds:
                found[name] = _TRUTH
            elif int in kinds and float not in kinds:
                found[name] = _WHOLE
    return found


_INSTANT: Final = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:")
_TRUTH: Final = re.compile(r"(?:true|false)\Z")
_WHOLE: Final = re.compile(r"-?[0-9]+\Z")
_WORDS: Final = {
    _INSTANT: "a time in ISO 8601 with an offset",
    _TRUTH: "true or false",
    _WHOLE: "a whole number",
}
_LISTS: Final[dict[type[Any], frozenset[str]]] = {}
_PATTERNS: Final[dict[type[Any], dict[str, re.Pattern[str]]]] = {}
