"""A process of a peer, and the lines spoken with it: an order in, an answer out. One program submits and works.

install            → install                         make the tables
submit PACE A B    → {"seconds": …, "asked_ns": […]}  hand in jobs A to B - 1 (pace.py)
go, stop           → (nothing), stop                 serve, and no longer
leave              → the process ends
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from benchmarks.ordered import ROOT, Ordered
from benchmarks.pace import Pace, Submitted
from benchmarks.peers.known import Language, Peer

PYTHON: Final = ROOT / ".venv-peers" / "bin" / "python"
NODE_FOLDER: Final = ROOT / "benchmarks" / "peers" / "node"
CALLER: Final = 0
"""the index of a process that never works, and so leaves no mark"""
PROGRAMS: Final[dict[Language, list[str]]] = {
    "python": [str(PYTHON), "-m", "benchmarks.peers.python"],
    "node": ["node", str(NODE_FOLDER / "main.mjs")],
}


def command(peer: Peer, url: str, board: Path, index: int) -> list[str]:
    return [*PROGRAMS[peer.language], peer.name, url, str(board), str(index)]


def missing(peer: Peer) -> bool:
    """Whether its environment is not there."""
    return not (PYTHON if peer.language == "python" else NODE_FOLDER / "node_modules").exists()


class Caller:
    """The process of a peer that submits."""

    def __init__(self, process: Ordered) -> None:
        self._process = process

    @classmethod
    async def start(cls, peer: Peer, url: str, board: Path) -> Caller:
        """The peer's tables are there when it returns."""
        process = await Ordered.start(command(peer, url, board, CALLER))
        await process.expect("ready")
        process.tell("install")
        await process.expect("install")
        return cls(process)

    async def submit(self, how: Pace, numbers: range) -> Submitted:
        self._process.tell(f"submit {how} {numbers.start} {numbers.stop}")
        return Submitted(**json.loads(await self._process.answer()))

    async def leave(self) -> None:
        self._process.tell("leave")
        await self._process.gone()
