"""What keys do to the view. Pure: a key and a view make another view, or say what is wanted of the app."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct, structs

INTERVALS: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)

Key: TypeAlias = Literal["quit", "up", "down", "pause", "faster", "slower"]

_KEYS: Final[dict[str, Key]] = {
    "q": "quit",
    "Q": "quit",
    "\x03": "quit",
    "\x1b[A": "up",
    "\x1bOA": "up",
    "k": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "j": "down",
    "p": "pause",
    "+": "faster",
    "=": "faster",
    "-": "slower",
    "_": "slower",
}


class View(Struct, frozen=True, kw_only=True):
    every: float = 1.0
    selected: int | None = None
    """which queue, once somebody chose one"""


def keys_in(typed: str) -> list[Key]:
    """The keys among what was typed; an escape sequence is one, and what means nothing is left out."""
    found: list[Key] = []
    while typed:
        size = 3 if typed.startswith(("\x1b[", "\x1bO")) else 1
        key = _KEYS.get(typed[:size])
        if key is not None:
            found.append(key)
        typed = typed[size:]
    return found


def moved(view: View, key: Key, queues: int) -> View:
    """After this key, with so many queues to choose from."""
    if queues == 0:
        view = structs.replace(view, selected=None)
    match key:
        case "up" | "down" if queues:
            step = -1 if key == "up" else 1
            chosen = 0 if view.selected is None else view.selected + step
            return structs.replace(view, selected=min(queues - 1, max(0, chosen)))
        case "faster":
            return structs.replace(
                view, every=max((each for each in INTERVALS if each < view.every), default=view.every)
            )
        case "slower":
            return structs.replace(
                view, every=min((each for each in INTERVALS if each > view.every), default=view.every)
            )
        case _:
            return view
