"""Draws jobs as a tree for a terminal, each below the job that queued it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from ropewalk.cli import render
from ropewalk.client.views.jobs import JobInfo
from ropewalk.client.views.workflows import EdgeInfo
from ropewalk.domain.workflow.dependency import ParentKind

PARENTS_NAMED_MAX: Final = 3
"""How many of the jobs that a job waited for are named behind it."""
SIBLINGS_SHOWN_MAX: Final = 200
"""How many children of one job are shown, because a group may have a hundred thousand."""
ID_CHARS: Final = 8
"""How many characters of the end of an id are shown; ids that were made together begin alike."""


class Drawing:
    """The drawing of these jobs and of the dependencies between them."""

    def __init__(self, nodes: Sequence[JobInfo], edges: Sequence[EdgeInfo]) -> None:
        self._nodes = {node.id: node for node in nodes}
        self._below: defaultdict[str | None, list[JobInfo]] = defaultdict(list)
        for node in nodes:
            self._below[self._above(node)].append(node)
        self._after: defaultdict[str, list[EdgeInfo]] = defaultdict(list)
        for edge in edges:
            self._after[edge.child].append(edge)

    def _above(self, node: JobInfo) -> str | None:
        """Return the job below which this one is drawn: the one that queued it or the first job of its chain."""
        first = self._nodes.get(node.chain_id or "")
        if first is not None and node.chain_index:
            node = first
        return node.parent_id if node.parent_id in self._nodes else None

    def lines(self) -> list[str]:
        """Return the lines of the drawing.

        The jobs are visited depth first without recursion, because a chain may be longer than Python's stack.
        """
        lines: list[str] = []
        stack = [(node, "", "") for node in reversed(self._shown(None))]
        while stack:
            node, lead, indent = stack.pop()
            lines.append(lead + self._line(node))
            below = self._shown(node.id)
            hidden = len(self._below[node.id]) - len(below)
            entries = [
                (child, indent + ("└─ " if last and not hidden else "├─ "), indent + ("   " if last else "│  "))
                for child, last in _with_last(below)
            ]
            stack.extend(reversed(entries))
            if hidden:
                lines.append(f"{indent}└─ … and {hidden:,} more")
        return lines

    def _shown(self, parent: str | None) -> list[JobInfo]:
        return self._below[parent][:SIBLINGS_SHOWN_MAX]

    def _line(self, node: JobInfo) -> str:
        took = ""
        if node.started_at is not None and node.finished_at is not None:
            took = f"  {render.span(max(timedelta(0), node.finished_at - node.started_at).total_seconds())}"
        error = f"  {render.safe(node.error.message)}" if node.error is not None else ""
        link = f" [{node.chain_index + 1}]" if node.chain_index is not None else ""
        name = f"{render.safe(node.type)}{link} {_short(node.id)}"
        return f"{name}  {render.state(node.state)}{took}{self._waited(node)}{error}"

    def _waited(self, node: JobInfo) -> str:
        edges = self._after[node.id]
        if not edges:
            return ""
        names = [self._name(edge) for edge in edges[:PARENTS_NAMED_MAX]]
        more = f" and {len(edges) - len(names)} more" if len(edges) > len(names) else ""
        return f"  after {', '.join(names)}{more}"

    def _name(self, edge: EdgeInfo) -> str:
        """Name a job that was waited for, together with its group if the jobs queued under it were waited for, too."""
        parent = self._nodes.get(edge.parent)
        name = _short(edge.parent) if parent is None else f"{render.safe(parent.type)} {_short(parent.id)}"
        is_root = parent is None or parent.parent_id is None
        whole = edge.kind is ParentKind.TREE and (is_root or bool(self._below.get(edge.parent)))
        return f"the group of {name}" if whole else name


def _with_last(nodes: Sequence[JobInfo]) -> Iterator[tuple[JobInfo, bool]]:
    return ((node, place == len(nodes) - 1) for place, node in enumerate(nodes))


def _short(job_id: str) -> str:
    return render.safe(job_id[-ID_CHARS:])
