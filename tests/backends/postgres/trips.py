"""Which claims and settlements of a PostgreSQL store take one trip, without its threads."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ropewalk.backends.postgres import PostgresStore
from ropewalk.backends.postgres.connections import Session
from ropewalk.backends.postgres.wire.statement import Reply, Statement
from ropewalk.testing.contract.bench import Bench


def count_trips(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that grows with every trip: "claim" or "complete", with ", in vain" where the long way has to follow."""
    assert isinstance(bench.store, PostgresStore)
    trips: list[str] = []
    claims, transact_on_loop = bench.store._claims, Session.transact_on_loop

    async def counted(self: Session, said: Sequence[Statement]) -> list[Reply] | None:
        answers = await transact_on_loop(self, said)
        what = "claim" if self is claims else "complete"
        trips.append(what if answers is not None else f"{what}, in vain")
        return answers

    monkeypatch.setattr(Session, "transact_on_loop", counted)
    return trips
