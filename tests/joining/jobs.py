"""Jobs for these tests."""

from __future__ import annotations

from ropewalk import job


@job
async def greet(name: str) -> str:
    return f"hello {name}"


@job
async def measure(text: str) -> int:
    return len(text)


JOBS = (greet, measure)
