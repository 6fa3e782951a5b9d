"""What happens in the demo, step by step; everything that it reports is read from the store or from a process."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from ropewalk import App, Job
from ropewalk.cli.demo import jobs
from ropewalk.cli.demo.findings import DemoFailed, Findings, Sentence, Tone, name, percent, short
from ropewalk.cli.demo.fleet import LEASE_SECONDS, Fleet
from ropewalk.cli.demo.job_watcher import JobWatcher
from ropewalk.cli.demo.screen import Screen
from ropewalk.client.views.jobs import JobInfo
from ropewalk.ports.runtime import Runtime

WORKERS: Final = 3
"""How many workers are started."""
START_SECONDS: Final = 15.0
"""How long the workers may take to start."""
TROUBLE_AT_PERCENT: Final = 40
"""The progress of a job at which its worker is killed."""
DELAY_SECONDS: Final = 2.0
"""The delay of `nightly_digest`."""


class Scenario:
    """The sequence of steps that the demo goes through once."""

    def __init__(self, app: App, fleet: Fleet, screen: Screen, runtime: Runtime) -> None:
        self._app = app
        self._fleet = fleet
        self._screen = screen
        self._runtime = runtime
        self._watcher = JobWatcher(app, screen, runtime)
        self._found = Findings()

    async def play(self) -> Findings:
        """Go through all steps and return what was seen."""
        await self._start_workers()
        await self._run_ordinary_jobs()
        await self._lose_workers()
        await self._drain_workers()
        self._found.jobs = list(self._watcher.jobs.values())
        return self._found

    # ── the steps ──────────────────────────────────────────────────────────────────────────────────────────

    async def _start_workers(self) -> None:
        self._screen.line("A work queue in one SQLite file: everything reported here is read from that file.")
        self._screen.heading("Three workers")
        self._say("three worker processes are starting")
        self._found.workers = await self._registered({self._fleet.start() for _ in range(WORKERS)})
        names = ", ".join(short(worker) for worker in self._found.workers)
        self._say(f"workers {names} are up; each runs one job at a time")

    async def _run_ordinary_jobs(self) -> None:
        self._screen.heading("Ordinary jobs")
        await self._enqueue(
            jobs.send_email("ada@example.org"),
            jobs.charge_card(1042, cents=4990),
            jobs.crunch(upto=90_000),
            jobs.resize_image("beach.jpg"),
            jobs.resize_image("dunes.jpg"),
            jobs.resize_image("pier.jpg"),
            jobs.nightly_digest("monday").using(delay=DELAY_SECONDS),
        )
        self._say(f"nightly_digest is not due yet: it waits {DELAY_SECONDS:g} s in the store")
        await self._watcher.until("every job ends", self._all_ended)

    async def _lose_workers(self) -> None:
        self._screen.heading("A worker is killed, another freezes")
        [video] = await self._enqueue(jobs.encode_video("holiday.mp4"))
        await self._watcher.until("it runs", lambda: percent(self._job(video)) > 0)
        [audio] = await self._enqueue(jobs.transcribe("interview.wav"))
        await self._watcher.until("that runs too", lambda: percent(self._job(audio)) > 0)
        await self._watcher.until("one is well under way", lambda: percent(self._job(video)) >= TROUBLE_AT_PERCENT)
        await self._kill_worker_of(video)
        await self._freeze_worker_of(audio)
        await self._watcher.until("the frozen worker's job starts elsewhere", lambda: self._job(audio).attempt == 2)
        await self._thaw()
        await self._watcher.until("every job ends", self._all_ended)

    async def _drain_workers(self) -> None:
        self._fleet.drain()
        pids = self._found.workers
        await self._watcher.until(
            "the workers drain", lambda: None not in map(self._fleet.exit_code, pids.values()), within_seconds=6
        )
        self._found.exit_codes = {worker: self._fleet.exit_code(pid) for worker, pid in pids.items()}

    # ── parts of the steps ────────────────────────────────────────────────────────────────────────────────

    async def _registered(self, pids: set[int]) -> dict[str, int]:
        """Wait until all workers have registered in the store, and return the process id of each worker."""
        limit = self._runtime.monotonic() + START_SECONDS
        while True:
            known = {card.id: card.pid for card in await self._app.workers() if card.pid in pids}
            if len(known) == len(pids):
                return known
            self._check_processes(limit)
            await self._runtime.sleep(0.05)

    async def _enqueue(self, *wanted: Job[Any, Any]) -> list[str]:
        handles = await self._app.enqueue_many(wanted)
        ids = [handle.id for handle in handles]
        self._found.enqueued += ids
        types = ", ".join(dict.fromkeys(each.type.name for each in wanted))
        self._say(f"{types} queued" if len(ids) == 1 else f"{len(ids)} jobs queued in one transaction: {types}")
        return ids

    async def _kill_worker_of(self, job_id: str) -> None:
        job, worker = await self._caught(job_id)
        self._fleet.kill(self._found.workers[worker])
        self._found.killed, self._found.killed_at_percent = worker, percent(job)
        self._say(
            f"worker {short(worker)} killed (SIGKILL) while running {name(job)} at {percent(job):.0f} %; "
            f"its lease expires in {LEASE_SECONDS} s",
            "bad",
        )

    async def _freeze_worker_of(self, job_id: str) -> None:
        job, worker = await self._caught(job_id)
        await self._freeze(self._found.workers[worker])
        self._found.frozen = worker
        self._say(
            f"worker {short(worker)} frozen (SIGSTOP) while running {name(job)} at {percent(job):.0f} %; "
            "it cannot know that others will take over its job",
            "bad",
        )

    async def _caught(self, job_id: str) -> tuple[JobInfo, str]:
        """Return a job that is running, and its worker."""
        await self._watcher.look()
        job = self._job(job_id)
        if job.worker is None:
            raise DemoFailed(f"{name(job)} is {job.state.value} already: this machine is too busy for the demo")
        return job, job.worker

    async def _freeze(self, pid: int) -> None:
        """Freeze a worker, but not in the middle of a write, because all others would wait for the lock of the file."""
        while True:
            self._fleet.freeze(pid)
            try:
                await asyncio.wait_for(self._app.once(f"frozen at {self._runtime.monotonic()}"), 0.3)
            except TimeoutError:
                self._fleet.thaw(pid)
                await self._runtime.sleep(0.05)
            else:
                return

    async def _thaw(self) -> None:
        worker = self._found.frozen
        pid = self._found.workers[worker]
        self._fleet.thaw(pid)
        self._say(f"worker {short(worker)} thawed: it continues as if nothing had happened, and reports its progress")
        await self._watcher.until("its late write is refused", lambda: jobs.REFUSED in self._fleet.log_of(pid))
        self._found.late_writes_refused = self._fleet.log_of(pid).count(jobs.REFUSED)
        self._say(
            f"the store refuses that late write: the job has another owner now, worker {short(worker)} lets go", "good"
        )

    # ── helpers ────────────────────────────────────────────────────────────────────────────────────────

    def _job(self, job_id: str) -> JobInfo:
        return self._watcher.jobs[job_id]

    def _all_ended(self) -> bool:
        return all(job.terminal for job in self._watcher.jobs.values())

    def _say(self, text: str, tone: Tone = "plain") -> None:
        self._screen.say(Sentence(text, tone))

    def _check_processes(self, limit: float) -> None:
        for pid in self._fleet.pids:
            if (code := self._fleet.exit_code(pid)) is not None:
                raise DemoFailed(f"a worker ended with code {code} before it began: {self._fleet.log_of(pid)[-2000:]}")
        if self._runtime.monotonic() > limit:
            raise DemoFailed(f"the workers did not start within {START_SECONDS:g} s")
