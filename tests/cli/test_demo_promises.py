"""The demo fails when something it promises did not happen: each promise is broken once."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ropewalk import JobInfo, State
from ropewalk.cli.demo.findings import Findings
from ropewalk.cli.demo.jobs import Crunched, Processed
from ropewalk.cli.demo.promises import promises
from ropewalk.cli.demo.run import document
from ropewalk.cli.render import to_json

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def made(job_type: str, **fields: object) -> JobInfo:
    usual: dict[str, object] = {
        "id": job_type,
        "type": job_type,
        "state": State.COMPLETED,
        "queue": "default",
        "tenant": "default",
        "priority": 0,
        "attempt": 1,
        "max_attempts": 3,
        "crashes": 0,
        "run": 1,
        "rev": 1,
        "created_at": NOON,
        "scheduled_for": NOON,
        "updated_at": NOON,
        "started_at": NOON,
        "finished_at": NOON,
        "deadline": None,
        "group_id": job_type,
        "parent_id": None,
        "chain_id": None,
        "chain_index": None,
        "awaits": None,
        "skipped": False,
        "worker": None,
        "idempotency_key": None,
        "correlation_id": None,
        "workflow_id": None,
        "workflow_type": None,
        "tags": {},
        "progress": None,
        "error": None,
        "cancel_requested": False,
        "arguments": {},
        "result": None,
    }
    return JobInfo(**{**usual, **fields})  # type: ignore[arg-type]


def found() -> Findings:
    jobs = [
        made("send_email", attempt=3),
        made("charge_card", state=State.FAILED),
        made("refund", parent_id="charge_card"),
        made("crunch", result=Crunched(10, pid=99)),
        made("nightly_digest", started_at=NOON + timedelta(seconds=2.1)),
        made("encode_video", attempt=2, crashes=1, result=Processed("a", resumed_from=40)),
        made("transcribe", attempt=2, crashes=1, result=Processed("b", resumed_from=20)),
    ]
    return Findings(
        enqueued=[job.id for job in jobs if job.type != "refund"],
        jobs=jobs,
        workers={"w1": 1, "w2": 2, "w3": 3},
        killed="w1",
        killed_at_percent=40,
        frozen="w2",
        late_writes_refused=1,
        exit_codes={"w1": -9, "w2": 0, "w3": 0},
    )


def changed(job_type: str, **fields: object) -> Callable[[Findings], None]:
    def change(seen: Findings) -> None:
        seen.jobs = [replace(job, **fields) if job.type == job_type else job for job in seen.jobs]  # type: ignore[arg-type]

    return change


def test_all_kept() -> None:
    assert [promise.text for promise in promises(found()) if not promise.kept] == []


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        (lambda seen: seen.enqueued.append("gone"), "nothing lost"),
        (changed("crunch", state=State.RUNNING, finished_at=None), "nothing lost"),
        (changed("send_email", attempt=1), "send_email"),
        (changed("send_email", state=State.DEAD_LETTER), "send_email"),
        (changed("charge_card", state=State.COMPLETED), "charge_card"),
        (changed("refund", state=State.FAILED), "charge_card"),
        (changed("refund", parent_id="another"), "charge_card"),
        (changed("crunch", result=Crunched(10, pid=3)), "crunch"),
        (changed("nightly_digest", started_at=NOON + timedelta(seconds=1.9)), "nightly_digest"),
        (changed("encode_video", crashes=0), "encode_video"),
        (changed("encode_video", result=Processed("a", resumed_from=0)), "encode_video"),
        (changed("encode_video", state=State.DEAD_LETTER), "encode_video"),
        (lambda seen: seen.exit_codes.update(w1=0), "encode_video"),
        (changed("transcribe", attempt=3), "transcribe"),
        (lambda seen: setattr(seen, "late_writes_refused", 0), "transcribe"),
        (lambda seen: seen.exit_codes.update(w3=1), "the other workers"),
    ],
)
def test_each_can_be_broken(change: Callable[[Findings], None], broken: str) -> None:
    seen = found()
    change(seen)
    checked = promises(seen)
    assert [promise.text[: len(broken)] for promise in checked if not promise.kept] == [broken]
    assert document(seen, checked, 12.0)["kept"] is False


def test_the_same_as_a_document() -> None:
    seen = found()
    told = json.loads(to_json(document(seen, promises(seen), 12.345)))
    assert (told["kept"], told["seconds"], told["enqueued"], told["late_writes_refused"]) == (True, 12.3, 6, 1)
    assert [promise["kept"] for promise in told["promises"]] == [True] * 8
    assert told["jobs"][3]["result"] == {"primes": 10, "pid": 99}
