"""Which peers there are: what they store in, how their store says what is left to do, and how much they are given.

Counting is the harness's own: with the statement here it asks a peer's store, and with the board whether every job
ran. Names of tables are the peers' own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, LiteralString, TypeAlias

Language: TypeAlias = Literal["python", "node"]
DurableStore: TypeAlias = Literal["sqlite", "postgres"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    name: str
    package: str
    """which it is, in the lock of its language"""
    store: DurableStore
    unfinished: LiteralString
    """SQL: how many jobs are not yet done (a failed one never is)"""
    settings: str
    """what is not its default, for people to read"""
    language: Language = "python"
    has_bulk: bool = True
    """whether many jobs may be submitted in one call; without, they are submitted at once and bulk is not measured"""
    jobs_max: int | None = None
    """a slow one is given fewer jobs than the others, so that a run takes minutes"""
    equal: bool = True
    """whether a commit survives power loss and a job its worker, as in ropewalk; others are shown and not compared"""


_ALL: Final = (
    Peer(
        name="pgqueuer-500",
        package="pgqueuer",
        store="postgres",
        unfinished="SELECT count(*) FROM pgqueuer",
        settings="batch 500, asyncpg, uvloop",
    ),
    Peer(
        name="pgqueuer",
        package="pgqueuer",
        store="postgres",
        unfinished="SELECT count(*) FROM pgqueuer",
        settings="batch 10 (default), asyncpg, uvloop",
        jobs_max=10_000,
    ),
    Peer(
        name="procrastinate",
        package="procrastinate",
        store="postgres",
        unfinished="SELECT count(*) FROM procrastinate_jobs WHERE status <> 'succeeded'",
        settings="concurrency 100, pool of 20",
        jobs_max=1_500,
    ),
    Peer(
        name="chancy",
        package="chancy",
        store="postgres",
        unfinished="SELECT count(*) FROM chancy_jobs WHERE state <> 'succeeded'",
        settings="async executor, concurrency 500, eager polling, updates sent every 50 ms",
        jobs_max=10_000,
    ),
    Peer(
        name="saq",
        package="saq",
        store="postgres",
        unfinished="SELECT count(*) FROM saq_jobs WHERE status <> 'complete'",
        settings="concurrency 100, pool of 20",
        has_bulk=False,
        jobs_max=2_000,
    ),
    Peer(
        name="graphile-worker-local",
        package="graphile-worker",
        store="postgres",
        language="node",
        unfinished="SELECT count(*) FROM graphile_worker._private_jobs",
        settings="concurrency 24, local queue of 500, completions in batches",
    ),
    Peer(
        name="graphile-worker",
        package="graphile-worker",
        store="postgres",
        language="node",
        unfinished="SELECT count(*) FROM graphile_worker._private_jobs",
        settings="concurrency 24, else defaults",
        jobs_max=5_000,
    ),
    Peer(
        name="pg-boss",
        package="pg-boss",
        store="postgres",
        language="node",
        unfinished="SELECT count(*) FROM pgboss.job WHERE name = 'bench' AND state <> 'completed'",
        settings="batches of 500, polled every 0.5 s (its least), no upkeep",
        jobs_max=5_000,
    ),
    Peer(
        name="huey",
        package="huey",
        store="sqlite",
        unfinished="SELECT count(*) FROM task",
        settings="fsync on, 4 threads, polled every 10 ms; a job is gone when taken",
        has_bulk=False,
        jobs_max=3_000,
        equal=False,
    ),
    Peer(
        name="litequeue",
        package="litequeue",
        store="sqlite",
        unfinished="SELECT count(*) FROM Queue WHERE status <> 2",
        settings="synchronous NORMAL (its own), polled every ms",
        has_bulk=False,
        jobs_max=3_000,
        equal=False,
    ),
)
PEERS: Final[dict[str, Peer]] = {peer.name: peer for peer in _ALL}
