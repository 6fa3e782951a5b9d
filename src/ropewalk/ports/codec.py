"""The codec turns values into bytes and back. The bytes are JSON, which people and other languages can read."""

from __future__ import annotations

from typing import Protocol


class Codec(Protocol):
    """Encodes and decodes values by their declared type, the `annotation`, which is `Any` if none is declared.

    decode(encode(v, T), T) == v holds for every value v of a type T. A codec never imports, evaluates or unpickles what
    it reads.
    """

    def encode(self, value: object, annotation: object) -> bytes:
        """Raises InvalidInput, which names the place and type of what cannot be encoded or does not fit
        `annotation`."""
        ...

    def decode(self, data: bytes, annotation: object) -> object:
        """Raises InvalidInput, which names the path and what was expected there."""
        ...
