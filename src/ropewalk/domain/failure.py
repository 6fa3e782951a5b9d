"""Errors as data: what is kept of a failed attempt. Never imported, unpickled or raised from the store."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

ERROR_TEXT_MAX: Final = 10_000
"""A stored message or traceback has at most this many characters."""


class Category(StrEnum):
    """The kind of an error, by which people search for jobs."""

    TEMPORARY = "temporary"
    PERMANENT = "permanent"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    SYSTEM = "system"
    RATE_LIMITED = "rate_limited"
    WORKER_LOST = "worker_lost"
    EXPIRED = "expired"


class ErrorInfo(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error as it is stored with a job or an attempt."""

    category: Category
    message: str
    code: str | None = None
    """A short and stable code for machines, such as `bad_input`, `worker_lost` or `deadline_exceeded`."""
    type: str | None = None
    """The name of the exception class."""
    traceback: str | None = None
    context: dict[str, str] = {}
    worker: str | None = None
    host: str | None = None
    duration_us: int | None = None


def clipped(text: str, limit: int = ERROR_TEXT_MAX) -> str:
    """Returns the text cut to the limit. The middle is left out, because both ends of a traceback matter.

    Half a surrogate pair, as in a file name that is not UTF-8, is escaped, because no store could keep it.
    """
    if not text.isascii():
        text = text.encode(errors="backslashreplace").decode()
    if len(text) <= limit:
        return text
    half = (limit - 5) // 2
    return f"{text[:half]}\n...\n{text[-half:]}"


WORKER_LOST: Final = ErrorInfo(
    category=Category.WORKER_LOST, code="worker_lost", message="the worker running this attempt was lost"
)
DEADLINE_EXCEEDED: Final = ErrorInfo(category=Category.EXPIRED, code="deadline_exceeded", message="deadline exceeded")


def damaged_row(columns: Sequence[str]) -> ErrorInfo:
    """Returns the error of a job whose stored row cannot be read."""
    named = ", ".join(columns)
    return ErrorInfo(
        category=Category.SYSTEM,
        code="damaged_row",
        message=f"the job's stored row is damaged: {named} cannot be read; repair the row, then retry the job",
    )
