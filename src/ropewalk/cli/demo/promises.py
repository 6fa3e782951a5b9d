"""Checks the promises of the demo against its findings; the demo fails if one of them was not kept."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from msgspec import Struct

from ropewalk.cli.demo.findings import Findings, short
from ropewalk.cli.demo.jobs import Crunched, Processed
from ropewalk.cli.demo.scenario import DELAY_SECONDS
from ropewalk.client.views.jobs import JobInfo
from ropewalk.domain.jobs.states import State


class Promise(Struct, frozen=True):
    """A promise, and whether it was kept."""

    text: str
    kept: bool


def promises(found: Findings) -> list[Promise]:
    """Return every promise of the demo."""
    return [
        _nothing_lost(found),
        _retried(_the(found, "send_email")),
        _compensated(_the(found, "charge_card"), found.jobs),
        _isolated(_the(found, "crunch"), found),
        _delayed(_the(found, "nightly_digest")),
        _recovered(_the(found, "encode_video"), found),
        _fenced(_the(found, "transcribe"), found),
        _drained(found),
    ]


def _nothing_lost(found: Findings) -> Promise:
    follow_ups = [job for job in found.jobs if job.id not in found.enqueued]
    ended = [job for job in found.jobs if job.terminal]
    complete = {job.id for job in ended} >= set(found.enqueued) and len(ended) == len(found.jobs)
    return Promise(
        f"nothing lost: {len(found.enqueued)} enqueued + {len(follow_ups)} compensation = {len(ended)} ended",
        complete and len(follow_ups) == 1,
    )


def _retried(email: JobInfo) -> Promise:
    return Promise(
        f"send_email failed twice and went out with attempt {email.attempt}",
        email.state is State.COMPLETED and email.attempt == 3,
    )


def _compensated(charge: JobInfo, jobs: Sequence[JobInfo]) -> Promise:
    refunds = [job for job in jobs if job.type == "refund" and job.parent_id == charge.id]
    return Promise(
        f"charge_card failed for good, and refund ran {'once' if len(refunds) == 1 else f'{len(refunds)} times'}",
        charge.state is State.FAILED and [job.state for job in refunds] == [State.COMPLETED],
    )


def _isolated(crunch: JobInfo, found: Findings) -> Promise:
    result = crunch.result
    elsewhere = isinstance(result, Crunched) and result.pid not in found.workers.values()
    return Promise("crunch ran in a process of its own, beside the worker", elsewhere)


def _delayed(digest: JobInfo) -> Promise:
    waited = 0.0 if digest.started_at is None else (digest.started_at - digest.created_at).total_seconds()
    return Promise(
        f"nightly_digest started {waited:.1f} s after it was queued, not before its {DELAY_SECONDS:g} s were over",
        digest.state is State.COMPLETED and waited >= DELAY_SECONDS,
    )


def _recovered(video: JobInfo, found: Findings) -> Promise:
    resumed = video.result.resumed_from if isinstance(video.result, Processed) else 0
    return Promise(
        f"encode_video outlived worker {short(found.killed)}: attempt {video.attempt}, from checkpoint {resumed} %",
        video.state is State.COMPLETED
        and video.crashes == 1
        and found.exit_codes[found.killed] == -signal.SIGKILL
        and resumed >= found.killed_at_percent > 0,
    )


def _fenced(audio: JobInfo, found: Findings) -> Promise:
    return Promise(
        f"transcribe completed once, elsewhere; late writes refused: {found.late_writes_refused}",
        audio.state is State.COMPLETED and audio.attempt == 2 and found.late_writes_refused >= 1,
    )


def _drained(found: Findings) -> Promise:
    codes = [code for worker, code in found.exit_codes.items() if worker != found.killed]
    return Promise("the other workers drained on SIGTERM and exited 0", codes == [0] * len(codes) and bool(codes))


def _the(found: Findings, job_type: str) -> JobInfo:
    (job,) = (job for job in found.jobs if job.type == job_type)
    return job
