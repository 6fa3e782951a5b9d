"""Prints jobs for people: a page of jobs as a table, one job in detail, its history and its log lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from ropewalk.cli import render
from ropewalk.client.views.answers import LogInfo, SearchPage
from ropewalk.client.views.jobs import UNDECODED, HistoryInfo, JobInfo
from ropewalk.domain.failure import ErrorInfo
from ropewalk.domain.jobs.record import DEFAULT_QUEUE, DEFAULT_TENANT
from ropewalk.domain.redaction import HIDDEN, RESULT, redacted
from ropewalk.domain.time import to_datetime
from ropewalk.runtime.system import SystemRuntime


def echo_page(page: SearchPage) -> None:
    """Print a page of jobs as a table."""
    if not page.jobs:
        render.echo("no jobs match")
        return
    # The column is left out if all jobs are in the default queue, as in most apps.
    with_queue = any(job.queue != DEFAULT_QUEUE for job in page.jobs)
    header = ["ID", "TYPE", "STATE", "ATTEMPT", "AGE"]
    now = to_datetime(SystemRuntime().now())
    rows = [
        [job.id, render.safe(job.type), render.state(job.state), _attempts(job), _age(job, now)] for job in page.jobs
    ]
    if with_queue:
        header.insert(2, "QUEUE")
        for row, job in zip(rows, page.jobs, strict=True):
            row.insert(2, render.safe(job.queue))
    render.echo_table(header, rows)
    if page.next_cursor is not None:
        render.echo(f"\nnext page: --cursor {page.next_cursor}")


def echo_job(job: JobInfo) -> None:
    """Print everything about one job."""
    render.echo_details(
        [
            ("id", job.id),
            ("type", render.safe(job.type)),
            ("state", render.state(job.state) + (" (a cancellation is requested)" if job.cancel_requested else "")),
            (
                "attempt",
                _attempts(job) + (f", of which {job.crashes} were lost with their worker" if job.crashes else ""),
            ),
            ("run", str(job.run) if job.run > 1 else None),
            ("queue", render.safe(job.queue)),
            ("priority", str(job.priority) if job.priority else None),
            ("worker", job.worker),
            ("progress", _progress(job)),
            *_times(job),
            *_labels(job),
            ("arguments", _value(_shown(job.arguments, job))),
            ("result", None if job.result is None else _value(_shown_result(job))),
            ("error", None if job.error is None else _error(job.error)),
            ("damaged", f"{', '.join(job.damaged)} cannot be read" if job.damaged else None),
        ]
    )


def echo_history(history: Sequence[HistoryInfo]) -> None:
    """Print the history of a job as a table."""
    render.echo()
    render.echo_table(
        ("REV", "AT", "WHAT", "ATTEMPT", "WORKER", "WHY"),
        [
            (
                str(entry.rev),
                f"{entry.at:%Y-%m-%d %H:%M:%S.%f}"[:-3],
                render.safe(entry.kind),
                "" if entry.attempt is None else str(entry.attempt),
                entry.worker or "",
                render.safe(entry.reason or ""),
            )
            for entry in history
        ],
    )


def echo_logs(lines: Sequence[LogInfo]) -> None:
    """Print the log lines of a job as a table."""
    render.echo()
    if not lines:
        render.echo("the job logged nothing")
        return
    render.echo_table(
        ("AT", "ATTEMPT", "LEVEL", "MESSAGE"),
        [
            (
                f"{line.at:%Y-%m-%d %H:%M:%S.%f}"[:-3],
                str(line.attempt),
                line.level,
                render.safe(line.message) + (f"  {_value(line.fields)}" if line.fields else ""),
            )
            for line in lines
        ],
    )


def presentable(job: JobInfo) -> JobInfo:
    """Return the job with arguments and result that fit into a JSON document, and with secrets hidden."""
    return replace(job, arguments=_shown(job.arguments, job), result=render.plain(_shown_result(job)))


def _age(job: JobInfo, now: datetime) -> str:
    return render.span(max(0.0, (now - job.created_at).total_seconds()))


def _attempts(job: JobInfo) -> str:
    return f"{job.attempt} of {job.max_attempts or 'any'}"


def _progress(job: JobInfo) -> str | None:
    if job.progress is None:
        return None
    message = f"  {render.safe(job.progress.message)}" if job.progress.message else ""
    return f"{job.progress.percent:.0f} %{message}"


def _times(job: JobInfo) -> list[tuple[str, str | None]]:
    took = ""
    if job.started_at is not None and job.finished_at is not None:
        took = f" ({render.span((job.finished_at - job.started_at).total_seconds())} after the last start)"
    return [
        ("created", render.moment(job.created_at)),
        ("scheduled", None if job.scheduled_for == job.created_at else render.moment(job.scheduled_for)),
        ("started", None if job.started_at is None else render.moment(job.started_at)),
        ("finished", None if job.finished_at is None else render.moment(job.finished_at) + took),
        ("deadline", None if job.deadline is None else render.moment(job.deadline)),
    ]


def _labels(job: JobInfo) -> list[tuple[str, str | None]]:
    labels = {
        "tenant": None if job.tenant == DEFAULT_TENANT else job.tenant,
        "parent": job.parent_id,
        "workflow": job.workflow_id,
        "correlation": job.correlation_id,
        "key": job.idempotency_key,
        "tags": " ".join(f"{name}={value}" for name, value in sorted(job.tags.items())) or None,
    }
    return [(name, None if value is None else render.safe(value)) for name, value in labels.items()]


def _shown(arguments: Mapping[str, object], job: JobInfo) -> dict[str, object]:
    if UNDECODED in arguments and job.secrets:
        return {UNDECODED: HIDDEN}
    return {name: render.plain(value) for name, value in redacted(arguments, job.secrets).items()}


def _shown_result(job: JobInfo) -> object:
    return HIDDEN if job.result is not None and RESULT in job.secrets else redacted(job.result, job.secrets)


def _value(value: object) -> str:
    return render.safe(render.to_json(value))


def _error(error: ErrorInfo) -> str:
    head = f"{error.category.value}: {error.type + ': ' if error.type else ''}{error.message}"
    return render.safe(head) + (f"\n{render.safe_lines(error.traceback)}" if error.traceback else "")
