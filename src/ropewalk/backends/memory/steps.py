"""What a job keeps between its attempts: the steps it finished or waits at, and the signals sent to it."""

from __future__ import annotations

from collections import deque

from ropewalk.domain.workflow.completion import StepRecord


class Mailbox:
    def __init__(self) -> None:
        self._steps: dict[int, dict[int, StepRecord]] = {}
        """by seq and position"""
        self._signals: dict[int, dict[str, deque[bytes | None]]] = {}
        """by seq and name, oldest first"""

    def steps(self, seq: int) -> list[StepRecord]:
        return [step for _, step in sorted(self._steps.get(seq, {}).items())]

    def step(self, seq: int, position: int) -> StepRecord | None:
        return self._steps.get(seq, {}).get(position)

    def keep(self, seq: int, step: StepRecord) -> None:
        self._steps.setdefault(seq, {})[step.position] = step

    def forget_steps(self, seq: int) -> None:
        self._steps.pop(seq, None)

    def post(self, seq: int, name: str, value: bytes | None) -> None:
        self._signals.setdefault(seq, {}).setdefault(name, deque()).append(value)

    def holds(self, seq: int, name: str) -> bool:
        return name in self._signals.get(seq, {})

    def take(self, seq: int, name: str) -> bytes | None:
        """The oldest signal of this name, which is there."""
        of_job = self._signals[seq]
        value = of_job[name].popleft()
        if not of_job[name]:
            del of_job[name]
        if not of_job:
            del self._signals[seq]
        return value

    def remove(self, seq: int) -> None:
        """The job is gone."""
        self._steps.pop(seq, None)
        self._signals.pop(seq, None)
