"""A TCP port nobody uses, below the ephemeral range: no outgoing connection takes it while a server restarts."""

from __future__ import annotations

import secrets
import socket
from typing import Final

HOST: Final = "127.0.0.1"
CANDIDATES: Final = range(20_000, 32_768)
"""32 768 is where Linux begins to hand out ports to outgoing connections; others begin higher"""
TRIES_MAX: Final = 100


def free_port() -> int:
    """Not `random`: tests seed it, and two runs with one seed would try the same ports in the same order."""
    for _ in range(TRIES_MAX):
        port = secrets.choice(CANDIDATES)
        if _is_free(port):
            return port
    raise OSError(f"{TRIES_MAX} ports of {HOST} between {CANDIDATES.start} and {CANDIDATES.stop} tried, all taken")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
