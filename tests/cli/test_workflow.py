"""H5, C8: `ropewalk workflow show` draws what belongs together."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from click.testing import Result as Printed

from ropewalk import Abort, App, Context, Group, NotFound, Result, State, job
from ropewalk.cli import workflow_tree
from ropewalk.cli.group import root


@job
async def part(number: int) -> int:
    if number == 2:
        raise Abort("two is broken")
    return number


@job
async def after() -> None:
    pass


@job
async def count(ctx: Context, left: int) -> Result[int, int]:
    return ctx.continue_with(count(left - 1)) if left else ctx.result(0)


@job
async def flow(ctx: Context) -> Result[None, int]:
    return ctx.queue(part(1), part(2), count(1)).next(after(), when="all_success")


@pytest.fixture
async def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/jobs.db"
    app = App(url, jobs=[part, after, count, flow])
    async with app.running():
        handle = await app.enqueue(flow(), id="flow-1", workflow_id="night")
        await handle.group(timeout=10)
    return url


def show(*arguments: str) -> Printed:
    return CliRunner().invoke(root, ["workflow", "show", *arguments])


def drawn(printed: Printed) -> list[str]:
    """Without times and the ends of ids."""
    return [re.sub(r" [0-9a-f]{8}(?!-)|  [\d.]+ (ms|s)\b", "", line) for line in printed.output.splitlines()]


@pytest.mark.parametrize("name", ["night", "flow-1"])
def test_by_label_and_by_group(url: str, name: str) -> None:
    assert drawn(show(name, "--url", url)) == [
        "flow flow-1  completed",
        "├─ part  completed",
        "├─ part  failed  two is broken",
        "├─ count [1]  completed",
        "├─ after  failed  after part, part, count  it depends on ..., which ended as failed".replace(
            "...", _failed(url)
        ),
        "└─ count [2]  completed",
        "",
        "4 completed, 2 failed",
    ]


def _failed(url: str) -> str:
    nodes = json.loads(show("night", "--url", url, "--json").output)["nodes"]
    [broken] = [node["id"] for node in nodes if node["type"] == "part" and node["state"] == "failed"]
    return str(broken)


def test_as_a_document(url: str) -> None:
    document = json.loads(show("night", "--url", url, "--json").output)
    assert [node["type"] for node in document["nodes"]] == ["flow", "part", "part", "count", "after", "count"]
    assert [(edge["kind"], edge["ending"]) for edge in document["edges"]] == [
        ("tree", "completed"),
        ("tree", "failed"),
        ("tree", "completed"),
    ]


@job
async def ship() -> None:
    pass


@pytest.fixture
async def waiting_url(tmp_path: Path) -> str:
    """One job waits for a group in which a job failed, another for the root of that group alone."""
    url = f"sqlite:///{tmp_path}/waiting.db"
    app = App(url, jobs=[part, after, count, flow, ship])
    async with app.running():
        picked = await app.enqueue(flow(), id="pick-all", workflow_id="day")
        await app.enqueue(ship(), id="ship-all", workflow_id="day", depends_on=[Group(picked)])
        alone = await app.enqueue(ship(), id="ship-one", workflow_id="day", depends_on=[picked])
        await alone.result(timeout=10)
        assert (await app.wait("ship-all", timeout=10)).state is State.FAILED
    return url


def test_a_dependency_on_a_group_is_told_from_one_on_its_root(waiting_url: str) -> None:
    lines = drawn(show("day", "--url", waiting_url))
    reason = "it depends on the group of pick-all, where a job failed"
    assert f"ship ship-all  failed  after the group of flow pick-all  {reason}" in lines
    assert "ship ship-one  completed  after flow pick-all" in lines


def test_many_siblings_are_cut(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflow_tree, "SIBLINGS_SHOWN_MAX", 2)
    assert "└─ … and 3 more" in show("night", "--url", url).output


def test_unknown(url: str) -> None:
    with pytest.raises(NotFound, match="no workflow and no group 'nothing'"):
        CliRunner().invoke(root, ["workflow", "show", "nothing", "--url", url], catch_exceptions=False)
