"""What an app wants done with the lines its handlers log."""

from __future__ import annotations

import logging
from typing import Literal, TypeAlias

from msgspec import Struct

from ropewalk.errors import DefinitionError

LevelName: TypeAlias = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


class Logs(Struct, frozen=True, kw_only=True):
    """`App(logs=Logs(keep="WARNING", secret_keys=("iban",)))`."""

    keep: LevelName | None = "INFO"
    """lines of `ctx.log` from this level on are kept with their job; None keeps none"""
    secret_keys: tuple[str, ...] = ()
    """fields of these names are hidden, beside those that are always"""

    def __post_init__(self) -> None:
        if self.keep is not None and self.keep not in logging.getLevelNamesMapping():
            raise DefinitionError(f"Logs: keep={self.keep!r} must be the name of a level, like 'INFO', or None")
        if isinstance(self.secret_keys, str):
            raise DefinitionError(f"Logs: secret_keys={self.secret_keys!r} must be a tuple of names")

    def keeps(self, level: int) -> bool:
        return self.keep is not None and level >= logging.getLevelNamesMapping()[self.keep]
