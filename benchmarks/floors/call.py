"""What a floor is given and gives back: the arguments of a call, as bytes in between, and an id that names it."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Final, TypeAlias

import msgspec

Arguments: TypeAlias = dict[str, object]
Handler: TypeAlias = Callable[..., Awaitable[object]]
"""called with the arguments by name"""

encode: Final = msgspec.json.Encoder().encode
decode: Final = msgspec.json.Decoder(Arguments).decode


class Ids:
    """Texts nobody else makes: a random prefix and a count."""

    def __init__(self) -> None:
        self._prefix = secrets.token_hex(8)
        self._counter = count(1)

    def take(self) -> str:
        return f"{self._prefix}{next(self._counter):08x}"
