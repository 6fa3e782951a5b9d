"""One attempt, talked through with a handler's process: the order, its calls and their answers, its last word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, assert_never

import msgspec

from ropewalk.definitions.codec.codec import DEFAULT_CODEC
from ropewalk.definitions.context.attempt_port import AttemptPort, Cancellation
from ropewalk.domain.jobs.outcome import Outcome
from ropewalk.domain.time import to_seconds
from ropewalk.ports.runtime import Runtime, Timer
from ropewalk.runners.frames import Garbled
from ropewalk.runners.handler_process import HandlerProcess
from ropewalk.runners.messages import (
    Answer,
    Began,
    Call,
    Cancel,
    Checkpoint,
    Done,
    Logged,
    Once,
    RecordStep,
    Refusal,
    Run,
    Spawn,
    States,
    Steps,
    TakeSignal,
    Told,
    Trouble,
    outcome_of,
    refusal,
)

LOOK_SECONDS: Final = 0.1
"""between two looks at whether the attempt was cancelled"""

Reporter: TypeAlias = Callable[[BaseException, str], object]


class Conversation:
    """Calls are answered one after another, in the order they were made."""

    def __init__(self, process: HandlerProcess, attempt: AttemptPort, runtime: Runtime, report: Reporter) -> None:
        self._process = process
        self._attempt = attempt
        self._runtime = runtime
        self._report = report
        self._passed_on: Cancellation | None = None
        self._next_look: Timer | None = None
        self.began = False
        """user code ran (or may have)"""

    async def hold(self, order: Run) -> Outcome | None:
        """How the attempt ended; None when the process ended instead. Raises Garbled."""
        self._process.send(order)
        self._look()
        try:
            while (message := await self._process.receive()) is not None:
                match message:
                    case Began():
                        self.began = True
                    case Told(percent, said):
                        self._attempt.progress(percent, said)
                    case Logged(level, said, fields):
                        self._attempt.keep_log_line(level, said, fields)
                    case Trouble(error, phase):
                        self._report(RuntimeError(f"in the handler's process: {error}"), phase)
                    case Done():
                        return _outcome(message)
                    case _:
                        await self._answer(message)
            return None
        finally:
            if self._next_look is not None:
                self._next_look.cancel()

    def _look(self) -> None:
        self._pass_on_cancellation()
        self._next_look = self._runtime.after(LOOK_SECONDS, self._look)

    def _pass_on_cancellation(self) -> None:
        why = self._attempt.cancellation()
        if why is not None and why != self._passed_on:
            self._passed_on = why
            self._process.send(Cancel(why))

    async def _answer(self, call: Call) -> None:
        reply: Answer | Refusal
        try:
            reply = Answer(call.call, await self._ask(call))
        except Exception as error:
            reply = refusal(call.call, error)
        # First what the store may just have said: after a checkpoint the handler knows of a cancellation.
        self._pass_on_cancellation()
        self._process.send(reply)

    async def _ask(self, call: Call) -> object:
        attempt = self._attempt
        match call:
            case Checkpoint(_, data):
                await attempt.checkpoint(DEFAULT_CODEC.decode(data, Any))
                return None
            case Spawn(_, jobs):
                return await attempt.spawn(jobs)
            case States(_, ids):
                return await attempt.states(ids)
            case Once(_, key, ttl_us):
                return await attempt.once(key, to_seconds(ttl_us))
            case Steps():
                return await attempt.steps()
            case RecordStep(_, step):
                await attempt.record_step(step)
                return None
            case TakeSignal(_, step, signal):
                return await attempt.take_signal(step, signal)
            case _:
                assert_never(call)


def _outcome(message: Done) -> Outcome:
    try:
        return outcome_of(message)
    except msgspec.DecodeError as error:
        raise Garbled(f"ended with what is no outcome: {error}") from error
