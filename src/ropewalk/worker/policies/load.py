"""What a worker knows about itself when it asks whether to poll."""

from __future__ import annotations

from msgspec import Struct


class Load(Struct, frozen=True, kw_only=True):
    slots: int
    """how many handlers may run at once"""
    running: int
    """jobs that run now; of a batch every item"""
    buffered: int
    """jobs that are claimed and wait for a slot"""
    settled: int
    """attempts settled since the worker started, however they ended"""
    failed: int
    """of those settled the ones that ended in an error"""
    handler_seconds: float | None
    """how long a handler takes, smoothed; None before the first has ended, like the next"""
    settle_seconds: float | None
    """how long the store took to accept the last results"""
    lag_seconds: float
    """how long the event loop takes to come round, just now"""
    last_claim: int
    """how many jobs the last poll brought"""
