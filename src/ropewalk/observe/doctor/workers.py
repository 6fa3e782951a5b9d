"""Rules about workers: those that are gone, and jobs that no worker serves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ropewalk.domain.jobs.record import DEFAULT_TENANT
from ropewalk.domain.time import Instant
from ropewalk.observe.why_inputs import is_alive, serves
from ropewalk.ports.store.diagnosis import Backlog, Work
from ropewalk.ports.store.findings import Finding, lasting, named, note, number_of, ok, warn
from ropewalk.ports.store.leases import WorkerCard

SHOWN_MAX: Final = 10
"""This many lanes without a worker get a finding of their own, those that have waited longest first."""


def workers(cards: Sequence[WorkerCard], now: Instant) -> list[Finding]:
    """Returns findings about the workers that are alive, that are silent, and that drain."""
    alive = [card for card in cards if is_alive(card, now)]
    dead = [card for card in cards if not is_alive(card, now)]
    findings = [_present(alive)]
    if dead:
        silent = [f"{card.id} on {card.host}, for {lasting(now - card.beat_at)}" for card in dead]
        findings.append(
            note(
                "workers",
                f"{number_of(len(dead), 'worker')} gave no sign for a whole lease: {named(silent)}",
                "they were killed, or cannot reach the store: look at their logs; they are forgotten after a day",
            )
        )
    leaving = [card.id for card in alive if card.draining]
    if leaving:
        findings.append(
            note(
                "workers",
                f"{number_of(len(leaving), 'worker')} told to drain: {named(leaving)}",
                "one that stays like this waits for a handler: `ropewalk workers list` shows how many it holds",
            )
        )
    return findings


def unserved(work: Work, cards: Sequence[WorkerCard], now: Instant) -> list[Finding]:
    """Returns findings about jobs that could start and that no live worker claims, because none registers their type or
    serves their queue."""
    alive = [card for card in cards if is_alive(card, now)]
    registered = {name for card in alive for name in card.types}
    lost = [each for each in work.backlog if not any(serves(card, each.lane) for card in alive)]
    lost.sort(key=lambda each: each.oldest_ready_at)
    findings = [
        warn(
            "types" if each.lane.type not in registered else "queues",
            f"{_described(each, now)}, and no living worker {_lack(each, registered)}",
            f"start a worker that registers {each.lane.type!r} and serves queue {each.lane.queue!r}"
            + ("" if each.lane.tenant == DEFAULT_TENANT else f" of tenant {each.lane.tenant!r}"),
        )
        for each in lost[:SHOWN_MAX]
    ]
    if len(lost) > SHOWN_MAX:
        more = sum(each.ready for each in lost[SHOWN_MAX:])
        found = f"{number_of(more, 'job')} of {len(lost) - SHOWN_MAX} more types and queues, which nobody serves either"
        findings.append(warn("queues", found, "start workers that register and serve them: `ropewalk queues list`"))
    return findings or [ok("queues", "a living worker serves every job that could start")]


def _present(alive: Sequence[WorkerCard]) -> Finding:
    if not alive:
        return warn("workers", "no worker is alive", "start one: `ropewalk worker module:app`")
    slots = sum(card.concurrency for card in alive)
    # A worker also holds a few jobs that wait for the next free slot.
    taken = sum(min(card.held, card.concurrency) for card in alive)
    return ok("workers", f"{number_of(len(alive), 'worker')} alive, {taken} of {number_of(slots, 'slot')} taken")


def _described(backlog: Backlog, now: Instant) -> str:
    lane = backlog.lane
    whose = "" if lane.tenant == DEFAULT_TENANT else f" of tenant {lane.tenant!r}"
    waited = lasting(max(0, now - backlog.oldest_ready_at))
    jobs = number_of(backlog.ready, "job")
    return f"{jobs} of type {lane.type!r} in queue {lane.queue!r}{whose} could start, the oldest for {waited}"


def _lack(backlog: Backlog, registered: set[str]) -> str:
    return "serves that queue" if backlog.lane.type in registered else "registers that type"
