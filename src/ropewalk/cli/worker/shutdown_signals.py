"""The moments between the end of the work and that of the process, in which a signal must not spoil the exit code."""

from __future__ import annotations

import asyncio
import signal

from ropewalk.worker.worker import STOPPING


def hear_no_more() -> None:
    """Whoever asks again to stop has what they ask for."""
    loop = asyncio.get_running_loop()
    # Held back meanwhile: without the loop's handler, and before it is ignored, a signal kills.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    for each in STOPPING:
        loop.remove_signal_handler(each)
        signal.signal(each, signal.SIG_IGN)
