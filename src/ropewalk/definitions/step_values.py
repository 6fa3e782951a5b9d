"""The value of a step, as it is kept: by the return annotation of its function, else by the untyped codec."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import NoneType
from typing import Any, get_type_hints

from ropewalk.definitions.codec.codec import Wire, wire
from ropewalk.definitions.codec.mismatch import REFUSALS, Misfit
from ropewalk.definitions.context.attempt_port import AttemptPort
from ropewalk.errors import Abort, InvalidInput, LimitExceeded


class StepValues:
    def __init__(self, port: AttemptPort, name: str, fn: Callable[..., Any]) -> None:
        self._port = port
        self._name = name
        self._wire = _wire_of(fn)

    def encode(self, value: object) -> bytes | None:
        """What does not fit will not fit next time either: raises Abort."""
        try:
            if self._wire is None:
                data = self._port.encode_value(value)
            else:
                written = self._wire.encode(value)
                data = None if value is None else written
        except InvalidInput as error:
            hint = "; annotate what its function returns" if self._wire is None else ""
            raise Abort(InvalidInput(f"step {self._name!r}: its value does not fit: {error}{hint}")) from error
        limit = self._port.limits.result_bytes_max
        if data is not None and len(data) > limit:
            told = f"the value of step {self._name!r} is {len(data):,} bytes, over result_bytes_max={limit:,}"
            raise Abort(LimitExceeded(f"{told}: store it elsewhere and return a reference", field="step"))
        return data

    def decode(self, data: bytes | None) -> object:
        if data is None:
            return None
        try:
            return self._port.decode_value(data) if self._wire is None else self._wire.decode(data)
        except InvalidInput as error:
            raise Abort(InvalidInput(f"step {self._name!r}: its stored value no longer fits: {error}")) from error


def _wire_of(fn: Callable[..., Any]) -> Wire | None:
    """None where nothing is declared, or what cannot travel by its annotation."""
    while isinstance(fn, partial):
        fn = fn.func
    try:
        declared = get_type_hints(fn, include_extras=True).get("return", Any)
        if declared is Any or declared is object:
            return None
        return wire(NoneType if declared is None else declared)
    except (NameError, Misfit, *REFUSALS):
        return None
