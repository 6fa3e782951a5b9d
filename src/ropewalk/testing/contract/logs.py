"""Log lines that are kept with their job, and the backlog of the whole store."""

from __future__ import annotations

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.limits.fleet_limit import LaneName
from ropewalk.domain.logs import LINES_MAX, LogLine
from ropewalk.domain.retention import Retention
from ropewalk.domain.time import HOUR, SECOND
from ropewalk.ports.store.capabilities import DIAGNOSIS, LOGS
from ropewalk.ports.store.diagnosis import Backlog
from ropewalk.ports.store.leases import Renewal
from ropewalk.ports.store.operations import Deletion
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import LEASE, new_job, settlement


@needs(LOGS)
class LogContract(Contract):
    """Log lines of handlers are written in the transactions of renewals and settlements, and are bounded (R10, O8)."""

    async def test_log_lines_are_written_with_the_settlement(self, bench: Bench) -> None:
        """R10: whatever way the attempt ended, on the short way and on the long one."""
        for move in (Move.COMPLETE, Move.RETRY, Move.FAIL, Move.DEFER):
            job = await bench.running(move.value, on_failure=None)
            lines = (_line(1, "one", fields='{"a":1}'), _line(2, 'say "two" \\ {}, é', level=40))
            await bench.settle(job, move, lines=lines, delay_us=HOUR)
            assert await bench.store.log("default", job.id) == list(lines)

    async def test_log_lines_of_many_jobs_are_written_in_one_batch(self, bench: Bench) -> None:
        await bench.submit(*(new_job(id=f"id-{number}") for number in range(20)))
        jobs = await bench.claim(20)
        lines = {job.id: tuple(_line(at, f"{job.id} {at}") for at in (1, 2, 3)) for job in jobs[::2]}
        await bench.settle_all("worker", [settlement(job, lines=lines.get(job.id, ())) for job in jobs])
        for job in jobs:
            assert await bench.store.log("default", job.id) == list(lines.get(job.id, ()))

    async def test_log_lines_sent_with_a_renewal_are_kept_once(self, bench: Bench) -> None:
        """R10: a line that is sent again, because the answer was lost, is kept once."""
        job = await bench.running()
        first, second = _line(1, "first"), _line(2, "second")
        for lines in ((first,), (first, second)):
            await bench.store.renew("worker", [_renewal(job, lines)])
        assert await bench.store.log("default", job.id) == [first, second]
        await bench.settle(job, lines=(second, _line(3, "third")))
        assert [line.message for line in await bench.store.log("default", job.id)] == ["first", "second", "third"]

    async def test_log_lines_of_later_attempts_follow_those_of_earlier_ones(self, bench: Bench) -> None:
        job = await bench.running()
        await bench.settle(job, Move.RETRY, lines=(_line(1, "failed"),))
        again = await bench.claim_one()
        await bench.settle(again, lines=(_line(1, "went well", attempt=2),))
        kept = await bench.store.log("default", job.id)
        assert [(line.attempt, line.message) for line in kept] == [(1, "failed"), (2, "went well")]

    async def test_log_lines_of_a_stale_lease_are_not_kept(self, bench: Bench) -> None:
        """safe-5: neither by a renewal nor by a settlement."""
        job = await bench.running()
        await bench.runtime.advance(hours=1)
        await bench.sweep()
        await bench.store.renew("worker", [_renewal(job, (_line(1, "late"),))])
        await bench.settle(job, lines=(_line(1, "late"),))
        assert await bench.store.log("default", job.id) == []

    async def test_the_newest_log_lines_are_kept(self, bench: Bench) -> None:
        """R10: bounded, within one start and over several."""
        job = await bench.running()
        for start in (1, 401, 801):
            await bench.store.renew("worker", [_renewal(job, _lines(start, start + 399))])
        kept = await bench.store.log("default", job.id)
        assert [line.position for line in kept] == list(range(201, 1201))
        await bench.settle(job, Move.RETRY, lines=_lines(1201, 1201))
        again = await bench.claim_one()
        await bench.settle(again, lines=_lines(1, 2))
        kept = await bench.store.log("default", job.id)
        assert len(kept) == LINES_MAX
        assert [line.position for line in (kept[0], *kept[-3:])] == [204, 1201, 1, 2]

    async def test_log_lines_are_removed_with_their_job(self, bench: Bench) -> None:
        """live-8: deleted or past its retention, nothing of it is left, also under the same id."""
        for forget in (_delete, _prune):
            job = await bench.running(id="again")
            await bench.settle(job, lines=_lines(1, 3))
            await bench.runtime.advance(10)
            await forget(bench)
            await bench.submit(new_job(id="again"))
            assert await bench.store.log("default", "again") == []
            await bench.cancel("again")
            await _delete(bench)

    async def test_log_lines_of_another_tenant_cannot_be_read(self, bench: Bench) -> None:
        """safe-15"""
        job = await bench.running(tenant="acme")
        await bench.settle(job, lines=_lines(1, 1))
        assert await bench.store.log("default", job.id) == []
        assert len(await bench.store.log("acme", job.id)) == 1


@needs(DIAGNOSIS)
class BacklogContract(Contract):
    """The backlog counts the ready jobs of all tenants (O6)."""

    async def test_the_backlog_counts_ready_jobs_by_queue_and_type(self, bench: Bench) -> None:
        start = bench.runtime.now()
        await bench.running("a", queue="mail")
        await bench.add("a", queue="mail", delay_us=HOUR)
        await bench.add("a", queue="mail", delay_us=5 * SECOND)
        await bench.add("a", queue="mail")
        await bench.add("a", queue="mail", tenant="acme")
        await bench.add("b", queue="mail", limit_key="k")
        await bench.finished(queue="old")
        await bench.store.pause("default", "mail", paused=True)
        mail = [
            Backlog(lane=LaneName("acme", "mail", "a", ""), ready=1, oldest_ready_at=start),
            Backlog(lane=LaneName("default", "mail", "a", ""), ready=1, oldest_ready_at=start),
            Backlog(lane=LaneName("default", "mail", "b", ""), ready=1, oldest_ready_at=start),
        ]
        assert await bench.store.backlog() == mail
        await bench.runtime.advance(5)
        await bench.add(priority=100)
        now = bench.runtime.now()
        assert await bench.store.backlog() == [
            mail[0],
            Backlog(lane=LaneName("default", "default", "t", ""), ready=1, oldest_ready_at=now),
            Backlog(lane=LaneName("default", "mail", "a", ""), ready=2, oldest_ready_at=start),
            mail[2],
        ]

    async def test_the_backlog_of_an_empty_store_is_empty(self, bench: Bench) -> None:
        assert await bench.store.backlog() == []


def _line(position: int, message: str, *, attempt: int = 1, level: int = 20, fields: str | None = None) -> LogLine:
    return LogLine(position=position, attempt=attempt, at=1_000 + position, level=level, message=message, fields=fields)


def _lines(first: int, last: int) -> tuple[LogLine, ...]:
    return tuple(_line(position, f"line {position}") for position in range(first, last + 1))


def _renewal(job: JobRecord, lines: tuple[LogLine, ...]) -> Renewal:
    return Renewal(seq=job.seq, fence=job.fence, lease_us=LEASE, lines=lines)


async def _delete(bench: Bench) -> None:
    assert await bench.store.delete("default", ["again"]) == {"again": Deletion.DELETED}


async def _prune(bench: Bench) -> None:
    assert (await bench.store.prune(Retention.of(completed=1), 10)).jobs == 1
