"""What a client is told when a request fails: one shape, one list of codes, one mapping from the library's errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from math import ceil
from typing import Final

from msgspec import UNSET, Struct, UnsetType, structs

from ropewalk import errors as library


class ErrorCode(StrEnum):
    INVALID_REQUEST = "INVALID_REQUEST"
    UNAUTHORIZED = "UNAUTHORIZED"
    FORBIDDEN = "FORBIDDEN"
    NOT_FOUND = "NOT_FOUND"
    METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
    UNSUPPORTED_MEDIA_TYPE = "UNSUPPORTED_MEDIA_TYPE"
    DUPLICATE = "DUPLICATE"
    CONFLICT = "CONFLICT"
    LEASE_LOST = "LEASE_LOST"
    SPAWN_MISMATCH = "SPAWN_MISMATCH"
    PRECONDITION_FAILED = "PRECONDITION_FAILED"
    PAYLOAD_TOO_LARGE = "PAYLOAD_TOO_LARGE"
    QUOTA_EXCEEDED = "QUOTA_EXCEEDED"
    INTERNAL_ERROR = "INTERNAL_ERROR"
    UNSUPPORTED = "UNSUPPORTED"
    UNAVAILABLE = "UNAVAILABLE"
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"

    @property
    def status(self) -> int:
        """The HTTP status that goes with it."""
        return _STATUS[self]


_STATUS: Final[Mapping[ErrorCode, int]] = {
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.UNAUTHORIZED: 401,
    ErrorCode.FORBIDDEN: 403,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.METHOD_NOT_ALLOWED: 405,
    ErrorCode.DUPLICATE: 409,
    ErrorCode.CONFLICT: 409,
    ErrorCode.LEASE_LOST: 409,
    ErrorCode.SPAWN_MISMATCH: 409,
    ErrorCode.PRECONDITION_FAILED: 412,
    ErrorCode.PAYLOAD_TOO_LARGE: 413,
    ErrorCode.UNSUPPORTED_MEDIA_TYPE: 415,
    ErrorCode.QUOTA_EXCEEDED: 429,
    ErrorCode.INTERNAL_ERROR: 500,
    ErrorCode.UNSUPPORTED: 501,
    ErrorCode.UNAVAILABLE: 503,
    ErrorCode.OUTCOME_UNKNOWN: 503,
}


class DetailCode(StrEnum):
    MISSING = "MISSING"
    UNKNOWN_FIELD = "UNKNOWN_FIELD"
    WRONG_TYPE = "WRONG_TYPE"
    OUT_OF_RANGE = "OUT_OF_RANGE"
    LIMIT_EXCEEDED = "LIMIT_EXCEEDED"
    UNKNOWN_TYPE = "UNKNOWN_TYPE"
    BAD_INPUT = "BAD_INPUT"
    BAD_CURSOR = "BAD_CURSOR"
    NOT_JSON = "NOT_JSON"
    TOO_DEEP = "TOO_DEEP"
    UNSUPPORTED_PROTOCOL = "UNSUPPORTED_PROTOCOL"
    IDEMPOTENCY_CONFLICT = "IDEMPOTENCY_CONFLICT"


class ErrorDetail(Struct, frozen=True):
    """One thing that is wrong with a request."""

    field: str | None
    code: DetailCode
    message: str


class APIError(Struct, frozen=True, kw_only=True):
    """The body of every answer that tells of a failure."""

    code: ErrorCode
    message: str
    request_id: str
    details: Sequence[ErrorDetail] = ()
    state: str | UnsetType = UNSET
    """The state of the job that does not allow the call."""
    reason: str | UnsetType = UNSET
    """Why a lease is lost, or why a change is refused: a short code."""
    limit: str | UnsetType = UNSET
    """The part of a quota that is used up."""
    current: int | UnsetType = UNSET
    maximum: int | UnsetType = UNSET
    retry_after: float | UnsetType | None = UNSET
    """In seconds. None if waiting does not help."""


class HttpError(Exception):
    """A request is refused, with all that its answer says."""

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        details: Sequence[ErrorDetail] = (),
        headers: Mapping[str, str] | None = None,
        state: str | UnsetType = UNSET,
        reason: str | UnsetType = UNSET,
        limit: str | UnsetType = UNSET,
        current: int | UnsetType = UNSET,
        maximum: int | UnsetType = UNSET,
        retry_after: float | UnsetType | None = UNSET,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.headers = dict(headers or {})
        if isinstance(retry_after, int | float):
            self.headers["Retry-After"] = str(max(1, ceil(retry_after)))
        self._body = APIError(
            code=code,
            message=message,
            request_id="",
            details=details,
            state=state,
            reason=reason,
            limit=limit,
            current=current,
            maximum=maximum,
            retry_after=retry_after,
        )

    @property
    def details(self) -> Sequence[ErrorDetail]:
        return self._body.details

    def within(self, place: str) -> HttpError:
        """The refusal, whose fields are those of a part of the request."""
        details = [
            ErrorDetail(place if each.field is None else f"{place}.{each.field}", each.code, each.message)
            for each in self.details
        ]
        self._body = structs.replace(self._body, details=details)
        return self

    def body(self, request_id: str) -> APIError:
        return structs.replace(self._body, request_id=request_id)


def invalid(message: str, *, field: str | None = None, code: DetailCode = DetailCode.BAD_INPUT) -> HttpError:
    """A request that does not fit, with the one thing that is wrong."""
    return HttpError(ErrorCode.INVALID_REQUEST, message, details=[ErrorDetail(field, code, message)])


def not_found() -> HttpError:
    """The answer for what does not exist, and for what belongs to somebody else: the two must not be told apart."""
    return HttpError(ErrorCode.NOT_FOUND, "there is no such thing here")


def http_error(error: library.RopewalkError) -> HttpError:
    """The answer that says what an error of the library says."""
    message = str(error)
    match error:
        case library.UnknownJobType():
            return invalid(message, field="type", code=DetailCode.UNKNOWN_TYPE)
        case library.InvalidInput():
            return _invalid_input(error, message)
        case library.QuotaExceeded():
            return HttpError(
                ErrorCode.QUOTA_EXCEEDED,
                message,
                limit=error.limit,
                current=error.current,
                maximum=error.maximum,
                retry_after=error.retry_after,
            )
        case library.RevMismatch():
            return HttpError(ErrorCode.PRECONDITION_FAILED, message, headers={"ETag": f'"{error.current}"'})
        case library.NotFound():
            return not_found()
        case library.LeaseLost():
            return HttpError(ErrorCode.LEASE_LOST, message, reason=error.reason)
        case library.OutcomeUnknown():
            return HttpError(ErrorCode.OUTCOME_UNKNOWN, _OUTCOME_UNKNOWN, retry_after=1.0)
        case library.StoreUnavailable() | library.StoreRefused():
            return HttpError(ErrorCode.UNAVAILABLE, _UNAVAILABLE, retry_after=1.0)
        case _:
            code = _CODES.get(type(error))
            return HttpError(ErrorCode.INTERNAL_ERROR, _INTERNAL) if code is None else HttpError(code, message)


def _invalid_input(error: library.InvalidInput, message: str) -> HttpError:
    if error.field == "cursor":
        return invalid(message, field="cursor", code=DetailCode.BAD_CURSOR)
    if not isinstance(error, library.LimitExceeded):
        return invalid(message, field=error.field)
    if error.field != "input":
        return invalid(message, field=error.field, code=DetailCode.LIMIT_EXCEEDED)
    detail = ErrorDetail("payload", DetailCode.LIMIT_EXCEEDED, message)
    return HttpError(ErrorCode.PAYLOAD_TOO_LARGE, message, details=[detail])


_CODES: Final[Mapping[type[library.RopewalkError], ErrorCode]] = {
    library.Conflict: ErrorCode.CONFLICT,
    library.SpawnMismatch: ErrorCode.SPAWN_MISMATCH,
    library.Unsupported: ErrorCode.UNSUPPORTED,
    library.BeyondTenant: ErrorCode.FORBIDDEN,
}
"""Errors whose message is the whole answer."""
_UNAVAILABLE: Final = "the store cannot be reached or used now; nothing was changed: try again"
_OUTCOME_UNKNOWN: Final = "the store did not answer, so the change may have been made: repeat the call with the same id"
_INTERNAL: Final = "the request failed because of an error of the server, which its log names by the request id"
