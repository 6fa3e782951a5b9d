"""What a job keeps between its attempts: the steps that it finished or at which it waits, and the signals that were
sent to it."""

from __future__ import annotations

from collections import deque

from ropewalk.domain.workflow.completion import StepRecord


class StepsAndSignals:
    """The steps and signals of all jobs."""

    def __init__(self) -> None:
        self._steps: dict[int, dict[int, StepRecord]] = {}
        """The steps, by seq and position."""
        self._signals: dict[int, dict[str, deque[bytes | None]]] = {}
        """The signals, by seq and name; the oldest comes first."""

    def of(self, seq: int) -> list[StepRecord]:
        """Returns the steps of a job in the order of their positions."""
        return [step for _, step in sorted(self._steps.get(seq, {}).items())]

    def at(self, seq: int, position: int) -> StepRecord | None:
        return self._steps.get(seq, {}).get(position)

    def put(self, seq: int, step: StepRecord) -> None:
        self._steps.setdefault(seq, {})[step.position] = step

    def forget_steps(self, seq: int, from_position: int) -> None:
        kept = {position: step for position, step in self._steps.pop(seq, {}).items() if position < from_position}
        if kept:
            self._steps[seq] = kept

    def add_signal(self, seq: int, name: str, value: bytes | None) -> None:
        self._signals.setdefault(seq, {}).setdefault(name, deque()).append(value)

    def has_signal(self, seq: int, name: str) -> bool:
        """Whether a signal of this name has arrived."""
        return name in self._signals.get(seq, {})

    def take_signal(self, seq: int, name: str) -> bytes | None:
        """Removes and returns the oldest signal of this name. There must be one."""
        of_job = self._signals[seq]
        value = of_job[name].popleft()
        if not of_job[name]:
            del of_job[name]
        if not of_job:
            del self._signals[seq]
        return value

    def remove(self, seq: int) -> None:
        """Removes the steps and signals of a job that is deleted."""
        self._steps.pop(seq, None)
        self._signals.pop(seq, None)
