"""Runs the contract suite on the journal store: `pytest test_journal.py`."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from ropewalk_journal import JournalStore, findings

from ropewalk import App, OutcomeUnknown, StoreRefused
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.capabilities import DIAGNOSIS, LOGS
from ropewalk.ports.store.core import Store
from ropewalk.testing import FakeRuntime, contract
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import new_job, settlement

MEMORY = Path("/dev/shm")  # noqa: S108  nothing predictable is made there
"""A directory in memory if there is one, because this suite cannot test whether a store survives power loss."""


class JournalBackend(contract.Backend):
    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
        self.path = Path(self._directory.name, "jobs.journal")
        self._store: JournalStore | None = None

    async def open(self, runtime: Runtime) -> Store:
        """Return the same store again, because a journal serves one process."""
        if self._store is None:
            self._store = JournalStore(self.path, runtime)
            await self._store.open()
        return self._store

    async def close(self) -> None:
        if self._store is not None:
            await self._store.close()
        self._directory.cleanup()

    async def raise_epoch(self, store: Store, epoch: int) -> None:
        assert isinstance(store, JournalStore)
        store._memory._tables.epoch = epoch

    async def set_format(self, store: Store, tenant: str, job_id: str, version: int) -> None:
        assert isinstance(store, JournalStore)
        tables = store._memory._tables
        job = tables.find(tenant, job_id)
        assert job is not None
        tables.take_up(job)
        job.format = version
        job.rev += 1
        tables.put_back(job, await store.clock())


class TestJournal(contract.StoreContract):
    capabilities = frozenset({LOGS, DIAGNOSIS})

    @pytest.fixture
    def backend(self) -> JournalBackend:
        return JournalBackend()


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    runtime, backend = FakeRuntime(), JournalBackend()
    yield Bench(await backend.open(runtime), runtime, backend)
    await backend.close()


def path_of(bench: Bench) -> Path:
    assert isinstance(bench.backend, JournalBackend)
    return bench.backend.path


async def test_everything_is_there_again_when_it_is_opened_again(bench: Bench) -> None:
    await bench.submit(*(new_job(id=each) for each in ("ended", "running", "waiting")))
    ended, running = await bench.claim(2)
    await bench.settle_all("worker", [settlement(ended, result=b"7")])
    before = [await bench.history(each) for each in ("ended", "running", "waiting")]
    await bench.store.close()
    await bench.store.open()
    assert [await bench.history(each) for each in ("ended", "running", "waiting")] == before
    assert (await bench.job("ended")).result == b"7"
    assert (await bench.settle(running)).lost is None, "its lease holds"


async def test_half_an_entry_at_the_end_never_happened(bench: Bench) -> None:
    """The process died or the power failed during the write, so the entry was never acknowledged."""
    await bench.add(id="whole")
    await bench.add(id="half")
    await bench.store.close()
    path = path_of(bench)
    path.write_bytes(path.read_bytes()[:-3])
    await bench.store.open()
    assert await bench.find("half") is None
    await bench.add(id="later")
    await bench.store.close()
    await bench.store.open()
    assert [(await bench.job(each)).id for each in ("whole", "later")] == ["whole", "later"]


async def test_a_damaged_file_is_refused(bench: Bench) -> None:
    await bench.add()
    await bench.add()
    await bench.store.close()
    path = path_of(bench)
    data = bytearray(path.read_bytes())
    data[12] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(StoreRefused, match="is damaged at byte 0"):
        await bench.store.open()


async def test_a_file_serves_one_process(bench: Bench) -> None:
    with pytest.raises(StoreRefused, match="is open in another process"):
        await JournalStore(path_of(bench), bench.runtime).open()


async def test_what_could_not_be_written_is_not_believed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await bench.add(id="written")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("ropewalk_journal.journal.os.write", full)
        with pytest.raises(OutcomeUnknown, match="No space left on device"):
            await bench.add(id="lost")
    assert await bench.find("lost") is None
    assert (await bench.job("written")).id == "written"


async def test_the_doctor_passes_on_what_it_says_about_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with App(f"journal:///{tmp_path}/jobs.journal") as app:
        await app.queues()
        found = {each.subject: each for each in await app.examine()}
        assert {found[subject].level for subject in ("durability", "journal", "wake-ups")} == {"ok"}
        monkeypatch.setattr(findings, "LARGE_BYTES", 0)
        found = {each.subject: each for each in await app.examine()}
        assert (found["journal"].level, found["leases"].level) == ("note", "ok")
        assert found["journal"].advice is not None and "jobs.journal away" in found["journal"].advice
        monkeypatch.setattr(findings, "DISK_LOW_BYTES", 2**63)
        found = {each.subject: each for each in await app.examine()}
        assert found["journal"].level == "warn"
