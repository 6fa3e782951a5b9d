"""A process of a peer: `python -m benchmarks.peers.python NAME URL BOARD INDEX`."""

from __future__ import annotations

import asyncio
import importlib
import logging
import sys
from pathlib import Path
from typing import Final

from benchmarks.board import Board
from benchmarks.peers.python.adapter import MakeAdapter
from benchmarks.peers.python.serve import serve

MODULES: Final = {
    "pgqueuer-500": "pgqueuer_tuned",
    "pgqueuer": "pgqueuer_default",
    "procrastinate": "procrastinate_psycopg",
    "chancy": "chancy_async",
    "saq": "saq_postgres",
    "huey": "huey_sqlite",
    "litequeue": "litequeue_polled",
}
"""a module is not named like the package it imports"""
ON_UVLOOP: Final = ("pgqueuer-500", "pgqueuer")
"""whose own command line runs on it"""


def main(name: str, url: str, board: Path, index: int) -> None:
    logging.basicConfig(level=logging.ERROR)
    if name in ON_UVLOOP:
        importlib.import_module("uvloop").install()
    make: MakeAdapter = importlib.import_module(f"benchmarks.peers.python.{MODULES[name]}").make
    asyncio.run(_serve(make, url, Board(board, worker=index)))


async def _serve(make: MakeAdapter, url: str, board: Board) -> None:
    await serve(make(url, board))


if __name__ == "__main__":
    name, url, board, index = sys.argv[1:]
    main(name, url, Path(board), int(index))
