"""What a job type's handler returns: checked and encoded by its return annotation, decoded by it later."""

from __future__ import annotations

from typing import Any

from ropewalk.definitions.codec.codec import Bound, JsonCodec, Wire
from ropewalk.definitions.codec.mismatch import Misfit
from ropewalk.errors import InvalidInput
from ropewalk.ports.codec import Codec


class Returns:
    """None is stored as nothing at all, where the annotation allows it."""

    def __init__(self, job_type: str, annotation: Any, codec: Codec) -> None:
        self.annotation = annotation
        self._job_type = job_type
        self._wire = Wire(annotation) if type(codec) is JsonCodec else Bound(codec, annotation)
        self._is_none = annotation in (None, type(None))

    def encode(self, value: object) -> bytes | None:
        """Raises InvalidInput saying what does not fit, and where."""
        if value is None and self._is_none:
            return None  # most jobs: nothing to check, nothing to write
        try:
            data = self._wire.encode(value)
        except Misfit as error:
            hint = "; annotate the return type" if self.annotation in (Any, object) else ""
            raise InvalidInput(f"{self._job_type}: the result does not fit: {error}{hint}", field="result") from error
        return None if value is None else data

    def decode(self, data: bytes | None) -> object:
        try:
            return None if data is None else self._wire.decode(data)
        except Misfit as error:
            raise InvalidInput(f"{self._job_type}: the stored result does not fit: {error}", field="result") from error
