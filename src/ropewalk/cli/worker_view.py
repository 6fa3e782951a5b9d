"""Shows workers as rows of a table and as documents for JSON."""

from __future__ import annotations

from typing import Final

import click
from msgspec import structs

from ropewalk.cli import render
from ropewalk.domain.time import Instant, to_datetime, to_seconds
from ropewalk.observe.why_inputs import is_alive
from ropewalk.ports.store.leases import WorkerCard

NAMES_SHOWN: Final = 4
"""How many names of types, queues or tenants are shown; a worker may serve a hundred types."""
COLOURS: Final = {"alive": "green", "draining": "yellow", "dead": "red"}


def header() -> tuple[str, ...]:
    """Return the titles of the columns that `row` fills."""
    return "ID", "WHERE", "STATE", "HOLDS", "SLOTS", "UP", "LAST SIGN", "SERVES"


def row(card: WorkerCard, now: Instant) -> list[str]:
    """Return the cells about one worker."""
    state = state_of(card, now)
    return [
        card.id,
        render.safe(f"{card.host}:{card.pid}"),
        click.style(state, fg=COLOURS[state]),
        str(card.held),
        str(card.concurrency),
        render.span(age_seconds(card.started_at, now)),
        f"{render.span(age_seconds(card.beat_at, now))} ago",
        render.safe(serving(card)),
    ]


def document(card: WorkerCard, now: Instant) -> dict[str, object]:
    """Return everything about one worker for JSON."""
    return {
        **structs.asdict(card),
        "started_at": to_datetime(card.started_at),
        "beat_at": to_datetime(card.beat_at),
        "state": state_of(card, now),
        "silent_seconds": age_seconds(card.beat_at, now),
    }


def state_of(card: WorkerCard, now: Instant) -> str:
    """Return whether the worker is alive, draining or dead."""
    if not is_alive(card, now):
        return "dead"
    return "draining" if card.draining else "alive"


def serving(card: WorkerCard) -> str:
    """Return the types that the worker serves, and its queues and tenants unless it serves all of them."""
    parts = [_names(card.types)]
    if card.queues is not None:
        parts.append(f"queues {_names(card.queues)}")
    if card.tenants is not None:
        parts.append(f"tenants {_names(card.tenants)}")
    return "; ".join(parts)


def age_seconds(at: Instant, now: Instant) -> float:
    """Return how many seconds ago this was, but at least 0."""
    return max(0.0, to_seconds(now - at))


def _names(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more
