"""A server that does not answer is not waited for for ever."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ropewalk.backends.postgres.connections import ReadingSession, Session
from ropewalk.backends.sql.tx import Tx
from ropewalk.errors import OutcomeUnknown, StoreUnavailable
from tests.backends.postgres.conftest import OpenStore

pytestmark = pytest.mark.asyncio


def take(seconds: float) -> Callable[[Tx], int]:
    def work(tx: Tx) -> int:
        tx.run("SELECT pg_sleep(%s)", (seconds,))
        return 7

    return work


async def test_silence_is_limited(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """live-4: the server may go on with the statement, but nobody will commit it."""
    monkeypatch.setattr(Session, "_silence_seconds_max", 0.5)
    store = await open_store()
    assert await store._write(take(0.1)) == 7
    with pytest.raises(StoreUnavailable, match=r"no answer for 0\.5 s: nothing was changed") as told:
        await store._write(take(3))
    assert not isinstance(told.value, OutcomeUnknown)
    assert await store._write(take(0.1)) == 7


async def test_reading_may_take_longer(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "_silence_seconds_max", 0.3)
    monkeypatch.setattr(ReadingSession, "_silence_seconds_max", 1.5)
    store = await open_store()
    assert await store._read(take(0.7)) == 7
    with pytest.raises(StoreUnavailable, match="no answer"):
        await store._read(take(3))
