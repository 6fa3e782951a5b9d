"""Messages as frames on a stream of bytes: a length, then the message as MessagePack.

No message may be larger than a bound. Senders check it, and the worker refuses a larger message from a process.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

from ropewalk.domain.bounds import Bounds
from ropewalk.errors import LimitExceeded
from ropewalk.runners.messages import HandlerMessage, WorkerMessage

HEADER: Final = struct.Struct(">I")
"""The form of the length before each message."""

HEADER_MAX: Final = 2**32 - 1
"""The largest length that a header can hold."""

EXTRA_BYTES: Final = 32 * 1024 * 1024
"""Room in a message for a batch of spawned jobs, and for what a job has beside its input."""


class InvalidMessage(Exception):
    """The other end sent something that is no message, or a message over the bound."""


def frame_bytes_max(bounds: Bounds) -> int:
    """Bytes that one message may have at most, by the app's bounds on payloads, results and checkpoints."""
    largest = max(bounds.payload_bytes_max, bounds.result_bytes_max, bounds.checkpoint_bytes_max)
    return min(EXTRA_BYTES + 2 * largest, HEADER_MAX)


def frame_of(message: WorkerMessage | HandlerMessage, bytes_max: int) -> bytes:
    """Encode a message with its header. Raises LimitExceeded naming the message if it is over `bytes_max`."""
    body = _ENCODER.encode(message)
    if len(body) > bytes_max:
        what = type(message).__name__.lower()
        raise LimitExceeded(
            f"{what} takes {len(body):,} bytes between the worker and the handler's process, over the bound of "
            f"{bytes_max:,}: send less at once, or raise App(bounds=...)",
            field=what,
        )
    return HEADER.pack(len(body)) + body


def body_length(header: bytes, bytes_max: int) -> int:
    """The length of the message that follows this header. Raises InvalidMessage if it is over `bytes_max`."""
    (length,) = HEADER.unpack(header)
    if length > bytes_max:
        raise InvalidMessage(f"announced a message of {length:,} bytes, over the bound of {bytes_max:,}")
    return int(length)


def decode_worker_message(body: bytes) -> WorkerMessage:
    """Decode a message of the worker, which the handler's process trusts."""
    return _WORKER_MESSAGES.decode(body)


def decode_handler_message(body: bytes) -> HandlerMessage:
    """Decode a message of a handler's process. Raises InvalidMessage."""
    try:
        return _HANDLER_MESSAGES.decode(body)
    except msgspec.DecodeError as error:
        raise InvalidMessage(f"sent what is no message: {error}") from error


_ENCODER: Final = msgspec.msgpack.Encoder()
_WORKER_MESSAGES: Final[msgspec.msgpack.Decoder[WorkerMessage]] = msgspec.msgpack.Decoder(WorkerMessage)
_HANDLER_MESSAGES: Final[msgspec.msgpack.Decoder[HandlerMessage]] = msgspec.msgpack.Decoder(HandlerMessage)
