"""Messages as bytes on a stream: a length, then MessagePack. Senders keep a bound on one message, and the
worker holds its handlers' processes to it.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

from ropewalk.domain.bounds import Bounds
from ropewalk.errors import LimitExceeded
from ropewalk.runners.messages import Order, Report

HEADER: Final = struct.Struct(">I")
HEADER_MAX: Final = 2**32 - 1
ROOM_BYTES: Final = 32 * 1024 * 1024
"""for a batch of spawned jobs, and for what a job carries beside its input"""


class Garbled(Exception):
    """The other end sent what is no message, or one over the bound."""


def frame_bytes_max(bounds: Bounds) -> int:
    largest = max(bounds.payload_bytes_max, bounds.result_bytes_max, bounds.checkpoint_bytes_max)
    return min(ROOM_BYTES + 2 * largest, HEADER_MAX)


def framed(message: Order | Report, bytes_max: int) -> bytes:
    """Raises LimitExceeded naming the message."""
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
    (length,) = HEADER.unpack(header)
    if length > bytes_max:
        raise Garbled(f"announced a message of {length:,} bytes, over the bound of {bytes_max:,}")
    return int(length)


def order(body: bytes) -> Order:
    return _ORDERS.decode(body)


def report(body: bytes) -> Report:
    try:
        return _REPORTS.decode(body)
    except msgspec.DecodeError as error:
        raise Garbled(f"sent what is no message: {error}") from error


_ENCODER: Final = msgspec.msgpack.Encoder()
_ORDERS: Final[msgspec.msgpack.Decoder[Order]] = msgspec.msgpack.Decoder(Order)
_REPORTS: Final[msgspec.msgpack.Decoder[Report]] = msgspec.msgpack.Decoder(Report)
