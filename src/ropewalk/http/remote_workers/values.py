"""Users' values on their way between the store and a remote worker.

They are the library's own JSON, and pass as they are stored. The bytes of a type's own codec are not JSON, so they are
sent as tagged bytes.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw, Struct

from ropewalk.definitions.codec.codec import JsonCodec
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.errors import InvalidInput, LimitExceeded

AnyJobType: TypeAlias = JobType[..., Any, Any]


class _TaggedBytes(Struct, frozen=True):
    v: str
    tag: str = msgspec.field(default="bytes", name="$rw")


def as_sent(data: bytes, job_type: AnyJobType | None) -> Raw:
    """Returns arguments or a result of this type as they are sent to a worker."""
    if _is_json(job_type):
        return Raw(data)
    return Raw(msgspec.json.encode(_TaggedBytes(v=base64.b64encode(data).decode())))


def as_sent_or_none(data: bytes | None, job_type: AnyJobType | None = None) -> Raw | None:
    return None if data is None else as_sent(data, job_type)


def as_stored(value: object, *, limit: int, field: str) -> bytes | None:
    """Returns a value of a handler as it is stored. Raises LimitExceeded. Null is stored as nothing."""
    if value is None:
        return None
    data = msgspec.json.encode(value)
    if len(data) > limit:
        raise LimitExceeded(f"{field} has {len(data):,} bytes, over the limit of {limit:,}", field=field)
    return data


def result_as_stored(value: object, job_type: AnyJobType, *, limit: int) -> bytes | None:
    """Returns the output of a handler as it is stored, after a check against the return annotation of the type.

    Raises InvalidInput, which names `output`.
    """
    data = as_stored(value, limit=limit, field="output")
    if data is not None and not _is_json(job_type):
        try:
            data = base64.b64decode(msgspec.json.decode(data, type=_TaggedBytes).v, validate=True)
        except (msgspec.ValidationError, binascii.Error) as error:
            message = f"output: {job_type.name} has a codec of its own, so send tagged bytes"
            raise InvalidInput(message, field="output") from error
    try:
        job_type.decode_result(data)
    except InvalidInput as error:
        raise InvalidInput(f"output: {error}", field="output") from error
    return data


def _is_json(job_type: AnyJobType | None) -> bool:
    return job_type is None or isinstance(job_type.options.codec, JsonCodec)
