"""`ropewalk workflow`: draws the jobs of a workflow or group as a tree with their states."""

from __future__ import annotations

import click

from ropewalk.cli import ids, render
from ropewalk.cli.command import Command, Group, json_option
from ropewalk.cli.job_view import presentable
from ropewalk.cli.target import Target, target_options
from ropewalk.cli.workflow_tree import Drawing
from ropewalk.client.client import Client
from ropewalk.client.views.workflows import GroupInfo, WorkflowInfo
from ropewalk.domain.jobs.states import State
from ropewalk.errors import NotFound


@click.group(
    cls=Group,
    examples=[
        "ropewalk workflow show night-1 --app shop:app",
        "ropewalk workflow show 0198f2c4-... --app shop:app    # a group, by the id of its first job",
    ],
)
def workflow() -> None:
    """Show jobs that belong together."""


@workflow.command(
    cls=Command,
    examples=[
        "ropewalk workflow show night-1 --app shop:app",
        "ropewalk workflow show 0198f2c4-... --url sqlite:///jobs.db --json",
    ],
)
@click.argument("workflow_id", metavar="ID")
@target_options
@json_option
def show(target: Target, *, workflow_id: str, as_json: bool) -> None:
    """Show a workflow, or a group by the id of its first job, as a tree.

    Children are below the job that queued them, and the jobs of a chain one after another. The jobs that a job waited
    for are named behind it.
    """
    found = target.run(lambda client: _find(client, workflow_id))
    if as_json:
        nodes = [presentable(node) for node in found.nodes]
        render.echo_json({"id": workflow_id, "nodes": nodes, "edges": list(found.edges)})
        return
    for line in Drawing(found.nodes, found.edges).lines():
        render.echo(line)
    render.echo()
    render.echo(_summary(found))


async def _find(client: Client, workflow_id: str) -> WorkflowInfo | GroupInfo:
    """Return the workflow with this id, or else the group of the job with this id."""
    labelled = await client.workflow(workflow_id)
    if labelled.nodes:
        return labelled
    try:
        return await client.group(await ids.job_id(client, workflow_id))
    except NotFound as missing:
        raise NotFound(f"no workflow and no group {workflow_id!r} (never submitted here, or deleted)") from missing


def _summary(found: WorkflowInfo | GroupInfo) -> str:
    counts = {state: sum(node.state is state for node in found.nodes) for state in State}
    return ", ".join(f"{count} {render.state(state)}" for state, count in counts.items() if count)
