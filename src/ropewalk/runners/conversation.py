"""The worker's side of one attempt in a handler's process: the request, the calls and their answers, and the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, assert_never

import msgspec

from ropewalk.definitions.codec.codec import DEFAULT_CODEC
from ropewalk.definitions.context.attempt_port import AttemptPort, Cancellation
from ropewalk.domain.jobs.outcome import Outcome
from ropewalk.domain.time import to_seconds
from ropewalk.ports.runtime import Runtime, Timer
from ropewalk.runners.frames import InvalidMessage
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
    Progress,
    RecordStep,
    Refusal,
    ReportedError,
    Run,
    Spawn,
    States,
    Steps,
    TakeSignal,
    outcome_of,
    refusal,
)

CANCELLATION_CHECK_SECONDS: Final = 0.1
"""Time between two checks of whether the attempt was cancelled."""

Reporter: TypeAlias = Callable[[BaseException, str], object]
"""A function that reports an error, with the name of what failed, where it changes no outcome."""


class Conversation:
    """What a worker and a handler's process send each other about one attempt.

    The handler's calls are answered one after another, in the order in which they were made.
    """

    def __init__(self, process: HandlerProcess, attempt: AttemptPort, runtime: Runtime, report: Reporter) -> None:
        self._process = process
        self._attempt = attempt
        self._runtime = runtime
        self._report = report
        self._sent_cancellation: Cancellation | None = None
        self._watch_timer: Timer | None = None
        self.began = False
        """Whether user code has run, or may have."""

    async def run(self, request: Run) -> Outcome | None:
        """Send the request and answer calls until the attempt ends; return its outcome, or None if the process ended.

        Raises InvalidMessage when the process sends something that is no message.
        """
        self._process.send(request)
        self._watch_for_cancellation()
        try:
            while (message := await self._process.receive()) is not None:
                match message:
                    case Began():
                        self.began = True
                    case Progress(percent, text):
                        self._attempt.progress(percent, text)
                    case Logged(level, text, fields):
                        self._attempt.keep_log_line(level, text, fields)
                    case ReportedError(error, phase):
                        self._report(RuntimeError(f"in the handler's process: {error}"), phase)
                    case Done():
                        return _decoded_outcome(message)
                    case _:
                        await self._answer(message)
            return None
        finally:
            if self._watch_timer is not None:
                self._watch_timer.cancel()

    def _watch_for_cancellation(self) -> None:
        self._send_cancellation()
        self._watch_timer = self._runtime.after(CANCELLATION_CHECK_SECONDS, self._watch_for_cancellation)

    def _send_cancellation(self) -> None:
        why = self._attempt.cancellation()
        if why is not None and why != self._sent_cancellation:
            self._sent_cancellation = why
            self._process.send(Cancel(why))

    async def _answer(self, call: Call) -> None:
        reply: Answer | Refusal
        try:
            reply = Answer(call.call, await self._call_attempt(call))
        except Exception as error:
            reply = refusal(call.call, error)
        # The cancellation goes first: the store may just have reported it, and after a checkpoint the handler knows.
        self._send_cancellation()
        self._process.send(reply)

    async def _call_attempt(self, call: Call) -> object:
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


def _decoded_outcome(message: Done) -> Outcome:
    try:
        return outcome_of(message)
    except msgspec.DecodeError as error:
        raise InvalidMessage(f"ended with what is no outcome: {error}") from error
