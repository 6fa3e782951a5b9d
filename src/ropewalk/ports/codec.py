"""Values to bytes and back. JSON outside, so that people and other languages can read what is stored."""

from __future__ import annotations

from typing import Protocol


class Codec(Protocol):
    """`annotation` is the declared type (`Any` for none): it decides how bytes become values again.

    decode(encode(v, T), T) == v for every v of T. Never imports, evaluates or unpickles what it reads.
    """

    def encode(self, value: object, annotation: object) -> bytes:
        """Raises InvalidInput naming the place and type of what cannot be encoded or does not fit `annotation`."""
        ...

    def decode(self, data: bytes, annotation: object) -> object:
        """Raises InvalidInput naming the path and what was expected there."""
        ...
