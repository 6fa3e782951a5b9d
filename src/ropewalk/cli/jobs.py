"""`ropewalk jobs`: lists, shows, retries and cancels jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

import click

from ropewalk.cli import ids, render
from ropewalk.cli.command import Command, Group, json_option
from ropewalk.cli.errors import complain
from ropewalk.cli.job_view import echo_history, echo_job, echo_logs, echo_page, presentable
from ropewalk.cli.json_arguments import json_arguments
from ropewalk.cli.schedule_options import tag_of
from ropewalk.cli.target import Target, target_options
from ropewalk.client.client import Client
from ropewalk.client.filter import Filter
from ropewalk.client.views.answers import CancelResult, LogInfo, RetryResult, why_not_retried
from ropewalk.client.views.jobs import INCLUDABLE, HistoryInfo, JobInfo
from ropewalk.domain.jobs.operations import CancelStatus, RetryStatus
from ropewalk.domain.jobs.states import State
from ropewalk.fleet.exit_codes import ExitCode

STATES: Final = click.Choice([each.value for each in State])
STATES_HELP: Final = f"Only jobs in this state. Repeatable. One of {', '.join(State)}."


@click.group(
    cls=Group,
    examples=[
        "ropewalk jobs list --app shop:app --state failed",
        "ropewalk jobs show 0198f2c4-... --app shop:app --history",
    ],
)
def jobs() -> None:
    """List, show, retry and cancel jobs."""


@jobs.command(
    "list",
    cls=Command,
    examples=[
        "ropewalk jobs list --app shop:app",
        "ropewalk jobs list --state failed --state dead_letter --type send_email",
        "ropewalk jobs list --tag customer=42 --url sqlite:///jobs.db --json",
    ],
)
@target_options
@click.option("--state", "states", multiple=True, type=STATES, metavar="STATE", help=STATES_HELP)
@click.option("--type", "types", multiple=True, metavar="NAME", help="Only jobs of this type. Repeatable.")
@click.option("--queue", "queues", multiple=True, metavar="NAME", help="Only jobs of this queue. Repeatable.")
@click.option("--tag", "tags", multiple=True, metavar="NAME=VALUE", help="Only jobs with all these tags. Repeatable.")
@click.option("--workflow", metavar="ID", help="Only jobs of this workflow.")
@click.option(
    "--text",
    metavar="TEXT",
    help="Only jobs whose id, type, idempotency key or correlation id begins with TEXT, or whose error code is TEXT.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    default=50,
    show_default=True,
    metavar="N",
    help="Largest number of jobs to show.",
)
@click.option("--cursor", metavar="CURSOR", help="Show the next page; each page prints the cursor of the next one.")
@json_option
def list_(
    target: Target,
    *,
    states: Sequence[str],
    types: Sequence[str],
    queues: Sequence[str],
    tags: Sequence[str],
    workflow: str | None,
    text: str | None,
    limit: int,
    cursor: str | None,
    as_json: bool,
) -> None:
    """List jobs, newest first."""
    wanted = Filter(
        states=tuple(State(each) for each in states) or None,
        types=tuple(types) or None,
        queues=tuple(queues) or None,
        tags=dict(tag_of(each) for each in tags) or None,
        workflow_id=workflow,
        text=text,
    )
    target.warn_of_unknown_types(*types)
    page = target.run(lambda client: client.search(wanted, cursor=cursor, limit=limit))
    if as_json:
        render.echo_json({"jobs": [presentable(job) for job in page.jobs], "next_cursor": page.next_cursor})
    else:
        echo_page(page)


@jobs.command(
    cls=Command,
    examples=[
        "ropewalk jobs show 0198f2c4-... --app shop:app",
        "ropewalk jobs show 0198f2c4-... --history --logs --url sqlite:///jobs.db",
    ],
)
@click.argument("job_id", metavar="ID")
@target_options
@click.option("--history", "with_history", is_flag=True, help="Also show everything that has happened to the job.")
@click.option("--logs", "with_logs", is_flag=True, help="Also show the lines that the handler of the job has logged.")
@json_option
def show(target: Target, *, job_id: str, with_history: bool, with_logs: bool, as_json: bool) -> None:
    """Show the arguments, result, error and times of one job.

    Arguments and results that are secrets are hidden.
    """

    async def look(client: Client) -> tuple[JobInfo, list[HistoryInfo] | None, list[LogInfo] | None]:
        meant = await ids.job_id(client, job_id)
        return (
            await client.get(meant),
            await client.history(meant) if with_history else None,
            await client.logs(meant) if with_logs else None,
        )

    job, history, lines = target.run(look)
    if as_json:
        told = {name: each for name, each in asdict(presentable(job)).items() if name not in INCLUDABLE}
        asked = {"history": history, "logs": lines}
        render.echo_json({**told, **{name: each for name, each in asked.items() if each is not None}})
        return
    echo_job(job)
    if history is not None:
        echo_history(history)
    if lines is not None:
        echo_logs(lines)


@jobs.command(
    cls=Command,
    examples=[
        "ropewalk jobs retry 0198f2c4-... --app shop:app",
        """ropewalk jobs retry 0198f2c4-... --arguments '{"to": "ada@example.org"}' --app shop:app""",
    ],
)
@click.argument("job_ids", metavar="ID...", nargs=-1, required=True)
@target_options
@click.option(
    "--arguments", metavar="JSON", help="Replace the arguments by this JSON object. Needs --app for the job type."
)
@click.option(
    "--from-step",
    metavar="NAME",
    help="Keep the durable steps before the one of this name, and run this one and the later ones again.",
)
@json_option
def retry(
    target: Target, *, job_ids: Sequence[str], arguments: str | None, from_step: str | None, as_json: bool
) -> ExitCode:
    """Run failed or dead-lettered jobs again.

    A job keeps its id and has all its attempts again. --arguments takes JSON in the form that `jobs show` prints:
    decimals, dates and UUIDs are strings, bytes are base64, sets are arrays.
    """
    given, app = json_arguments(arguments), target.app()

    async def again(client: Client) -> list[RetryResult]:
        meant = await ids.job_ids(client, job_ids)
        if given is None:
            return [await client.retry(each, from_step=from_step) for each in meant]
        # The arguments of all jobs are checked before the first job is queued again.
        read = {each: given.of(app.registry, (await client.get(each)).type) for each in meant}
        return [await client.retry(each, arguments=read[each], from_step=from_step) for each in meant]

    answers = asyncio.run(target.within(app, again))
    if as_json:
        render.echo_json({"jobs": answers})
    else:
        for answer in answers:
            _tell_retry(answer)
    done = all(each.status is RetryStatus.QUEUED for each in answers)
    return ExitCode.OK if done else ExitCode.FAILED


@jobs.command(
    cls=Command,
    examples=[
        "ropewalk jobs cancel 0198f2c4-... --reason 'the customer left' --app shop:app",
        "ropewalk jobs cancel 0198f2c4-... --force    # stop a running handler instead of asking it",
    ],
)
@click.argument("job_ids", metavar="ID...", nargs=-1, required=True)
@target_options
@click.option("--reason", metavar="TEXT", help="Text to store with the job.")
@click.option("--force", is_flag=True, help="Stop running handlers instead of asking them to stop.")
@json_option
def cancel(target: Target, *, job_ids: Sequence[str], reason: str | None, force: bool, as_json: bool) -> ExitCode:
    """Cancel jobs.

    A waiting job is cancelled at once. The handler of a running job is asked to stop; with --force it is stopped.
    """

    async def end(client: Client) -> list[CancelResult]:
        meant = await ids.job_ids(client, job_ids)
        return [await client.cancel(each, reason=reason, force=force) for each in meant]

    answers = target.run(end)
    if as_json:
        render.echo_json({"jobs": answers})
    else:
        for answer in answers:
            _tell_cancel(answer)
    done = all(answer.status in (CancelStatus.CANCELLED, CancelStatus.CANCEL_REQUESTED) for answer in answers)
    return ExitCode.OK if done else ExitCode.FAILED


def _tell_retry(answer: RetryResult) -> None:
    match answer.status:
        case RetryStatus.QUEUED:
            render.echo(f"{answer.job_id}  queued again")
        case RetryStatus.NOT_FOUND:
            complain(f"{answer.job_id}: no such job for this tenant")
        case RetryStatus.NOT_RETRIABLE:
            complain(f"{answer.job_id} cannot be retried ({answer.reason}): {why_not_retried(answer.reason)}")


def _tell_cancel(answer: CancelResult) -> None:
    match answer.status:
        case CancelStatus.CANCELLED:
            render.echo(f"{answer.job_id}  cancelled")
        case CancelStatus.CANCEL_REQUESTED:
            render.echo(f"{answer.job_id}  is running; its worker has been asked to stop it")
        case CancelStatus.ALREADY_COMPLETE:
            complain(f"{answer.job_id} has already ended ({answer.previous_state}): there is nothing to cancel")
        case CancelStatus.NOT_FOUND:
            complain(f"{answer.job_id}: no such job for this tenant")
