"""The main program of a handler's process, which runs one attempt after another for as long as the worker lives.

Handlers run in the main thread. A second thread reads the pipe, so that the process ends with its worker and receives
cancellations whatever the handler does.

An attempt loads the job type, decodes the arguments, calls the handler, encodes what it returns and classifies what it
raises. Every way in which it can end is an outcome.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Coroutine
from queue import SimpleQueue
from threading import Thread
from typing import Any, BinaryIO, Final, NoReturn, cast

from ropewalk.definitions.context.context import Context, activate, deactivate
from ropewalk.definitions.handler_exceptions import Suspend
from ropewalk.definitions.results.classify import bad_input, classify, error_info
from ropewalk.definitions.results.returned import fold_of, outcome_of_return
from ropewalk.domain.failure import Category
from ropewalk.domain.jobs.outcome import Cancelled, Errored, Outcome
from ropewalk.errors import Abort, DefinitionError, InvalidInput, JobCancelled
from ropewalk.runners import memory
from ropewalk.runners.frames import HEADER, decode_worker_message, frame_bytes_max, frame_of
from ropewalk.runners.messages import HandlerMessage, Run
from ropewalk.runners.pipe_port import PipePort
from ropewalk.runners.source import classifier_at, handler_not_found, load_job_type


def run_attempt(port: PipePort) -> Outcome:
    """Run the handler of the attempt behind this port, and return the outcome of the attempt."""
    try:
        port.set_job_type(load_job_type(port.request.source))
    except DefinitionError as error:
        return handler_not_found(error)
    try:
        arguments = port.job_type.decode_input(port.job.input)
    except InvalidInput as error:
        return bad_input(error)
    try:
        with memory.bounded_to(port.request.memory_mb):
            return _call_handler(port, arguments)
    except BaseException as error:
        secrets = port.job_type.hidden_names(port.logs.secret_keys)
        if isinstance(error, JobCancelled) and port.cancellation() is not None:
            return Cancelled(error_info(error, Category.CANCELLED, secrets=secrets))
        decide = None if port.request.decide is None else classifier_at(port.request.decide)
        outcome = classify(
            error, port.job_type, port.report, attempt=port.job.attempt, app_decide=decide, secrets=secrets
        )
        bound = port.request.memory_mb
        return outcome if bound is None or not isinstance(error, MemoryError) else memory.naming_bound(outcome, bound)


def _call_handler(port: PipePort, arguments: dict[str, object]) -> Outcome:
    job_type, context = port.job_type, Context(port)
    token = activate(context)
    try:
        value = job_type.handler(*((context,) if job_type.takes_context else ()), **arguments)
        if inspect.iscoroutine(value):
            value = asyncio.run(_await_with_calls(context, cast("Coroutine[Any, Any, object]", value)))
        elif context.has_calls:
            asyncio.run(context.calls().wait_and_raise())
    except (Exception, Suspend) as error:
        if context.has_calls:
            asyncio.run(context.calls().wait())  # calls that other threads of the handler have made
        if isinstance(error, Exception):
            context.raise_step_fault(error)
        raise
    finally:
        deactivate(token)
    if fold_of(value) is not None:
        raise Abort(
            InvalidInput(
                f"{job_type.name} returned append=<function> from a process of its own, where the group's value is not "
                "at hand: use one of the named folds, or run the handler on the loop or in a thread",
                field="append",
            )
        )
    return outcome_of_return(job_type, context, value, port.request.bounds, strict=port.request.defaults.strict_return)


async def _await_with_calls(context: Context, handler: Coroutine[Any, Any, object]) -> object:
    """Run an async handler, then wait for the calls that it began and did not wait for.

    The end of its event loop would cancel these calls.
    """
    try:
        value = await handler
    except (Exception, Suspend):
        if context.has_calls:
            await context.calls().wait()
        raise
    if context.has_calls:
        await context.calls().wait_and_raise()
    return value


STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
"""Signals that stop a worker, and that this process ignores."""

PR_SET_PDEATHSIG: Final = 1
"""The option of Linux's `prctl` that chooses the signal a process gets when its parent dies."""


def main(fd: int) -> NoReturn:
    """Run the attempts that the worker at the other end of the socket `fd` sends."""
    try:
        _die_with_the_worker()
        os.set_inheritable(fd, False)  # noqa: FBT003 # takes no keyword
        pipe = Pipe(socket.socket(fileno=fd))
        _ignore_stop_signals()
        os.register_at_fork(after_in_child=pipe.close_in_fork)
        Thread(target=pipe.listen, name="ropewalk-pipe", daemon=True).start()
        while True:
            _run_and_report(pipe.attempts.get())
    except BaseException:
        traceback.print_exc()
    # Not sys.exit: it would wait for threads that a handler left behind.
    os._exit(1)


class Pipe:
    """The end of the pipe in the handler's process."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.attempts: SimpleQueue[PipePort] = SimpleQueue()
        """Attempts that the worker has sent and that have not begun; one at a time, because it waits for each."""

    def listen(self) -> NoReturn:
        """Read messages until the worker closes the pipe; then end the process, even while a handler runs.

        Without its worker nothing that this process does can count.
        """
        try:
            with self._connection.makefile("rb") as stream:
                self._read(stream)
        except MemoryError:
            os._exit(memory.EXIT_CODE)
        except Exception:
            traceback.print_exc()
        os._exit(0)

    def close_in_fork(self) -> None:
        """Close the pipe in a process that a handler has forked, which must neither write to it nor keep it open."""
        os.close(self._connection.detach())

    def _read(self, stream: BinaryIO) -> None:
        port: PipePort | None = None
        while len(header := stream.read(HEADER.size)) == HEADER.size:
            message = decode_worker_message(stream.read(HEADER.unpack(header)[0]))
            if isinstance(message, Run):
                port = PipePort(message, self._sender(frame_bytes_max(message.bounds)))
                self.attempts.put(port)
            elif port is not None:
                port.receive(message)

    def _sender(self, bytes_max: int) -> Callable[[HandlerMessage], object]:
        return lambda message: self._connection.sendall(frame_of(message, bytes_max))


def _run_and_report(port: PipePort) -> None:
    port.begin()
    try:
        outcome: Outcome = run_attempt(port)
    except BaseException as error:
        outcome = Errored(error_info(error, secrets=port.logs.secret_keys))
    # Before the outcome is sent: from then on the worker may kill this process at any moment.
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    port.finish(outcome)


def _die_with_the_worker() -> None:
    """Let the kernel kill this process when the worker dies, in case a handler that holds the GIL stops the reader."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _ignore_stop_signals() -> None:
    """Ignore the signals that stop a worker, because the worker decides when a handler ends.

    A service manager sends them to all processes at once. They are ignored by a function and not by SIG_IGN, which
    every program that a handler starts would inherit. A process that a handler forks gets the usual behaviour back; the
    signals are blocked during the fork, so that it loses none that arrives before it has.
    """
    usual = {each: signal.signal(each, _ignore) for each in STOP_SIGNALS}

    def restore() -> None:
        for each, handler in usual.items():
            signal.signal(each, handler)
        _release_signals()

    os.register_at_fork(before=_hold_signals, after_in_parent=_release_signals, after_in_child=restore)


def _ignore(_signal: int, _frame: object) -> None:
    return


def _hold_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)


def _release_signals() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
