"""The main program of a handler's process: one attempt after another, for as long as the worker lives.

Handlers run in the main thread. A second thread reads the pipe, so that the process ends with its worker and hears
of cancellations whatever the handler does.

One attempt in the handler's process: load, decode, call, encode, judge. Every way it can end is an outcome.
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
from ropewalk.runners.frames import HEADER, frame_bytes_max, framed, order
from ropewalk.runners.messages import Report, Run
from ropewalk.runners.pipe_port import PipePort
from ropewalk.runners.source import classifier_at, load, not_found


def perform(port: PipePort) -> Outcome:
    try:
        port.serve(load(port.order.source))
    except DefinitionError as error:
        return not_found(error)
    try:
        arguments = port.job_type.decode_input(port.job.input)
    except InvalidInput as error:
        return bad_input(error)
    try:
        with memory.bounded_to(port.order.memory_mb):
            return _called(port, arguments)
    except BaseException as error:
        secrets = port.job_type.hidden_names(port.logs.secret_keys)
        if isinstance(error, JobCancelled) and port.cancellation() is not None:
            return Cancelled(error_info(error, Category.CANCELLED, secrets=secrets))
        decide = None if port.order.decide is None else classifier_at(port.order.decide)
        outcome = classify(
            error, port.job_type, port.report, attempt=port.job.attempt, app_decide=decide, secrets=secrets
        )
        bound = port.order.memory_mb
        return outcome if bound is None or not isinstance(error, MemoryError) else memory.told(outcome, bound)


def _called(port: PipePort, arguments: dict[str, object]) -> Outcome:
    job_type, context = port.job_type, Context(port)
    token = activate(context)
    try:
        value = job_type.handler(*((context,) if job_type.takes_context else ()), **arguments)
        if inspect.iscoroutine(value):
            value = asyncio.run(_to_its_end(context, cast("Coroutine[Any, Any, object]", value)))
        elif context.has_calls:
            asyncio.run(context.calls().wait_and_raise())
    except (Exception, Suspend) as error:
        if context.has_calls:
            asyncio.run(context.calls().wait())  # those of other threads
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
    return outcome_of_return(job_type, context, value, port.order.bounds, strict=port.order.defaults.strict_return)


async def _to_its_end(context: Context, handler: Coroutine[Any, Any, object]) -> object:
    """Run an async handler, and what it called and did not wait for: the end of its loop would cancel that."""
    try:
        value = await handler
    except (Exception, Suspend):
        if context.has_calls:
            await context.calls().wait()
        raise
    if context.has_calls:
        await context.calls().wait_and_raise()
    return value


OWN_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
PR_SET_PDEATHSIG: Final = 1


def main(fd: int) -> NoReturn:
    """Serve the worker at the other end of `fd`."""
    try:
        _die_with_the_worker()
        os.set_inheritable(fd, False)  # noqa: FBT003 # takes no keyword
        pipe = Pipe(socket.socket(fileno=fd))
        _leave_signals_to_the_worker()
        os.register_at_fork(after_in_child=pipe.leave)
        Thread(target=pipe.listen, name="ropewalk-pipe", daemon=True).start()
        while True:
            _serve(pipe.attempts.get())
    except BaseException:
        traceback.print_exc()
    # Not sys.exit: it would wait for threads that a handler left behind.
    os._exit(1)


class Pipe:
    """This process's end of it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.attempts: SimpleQueue[PipePort] = SimpleQueue()

    def listen(self) -> NoReturn:
        """Never returns: without a worker nothing this process does can count, so it ends, handler or not."""
        try:
            with self._connection.makefile("rb") as stream:
                self._read(stream)
        except MemoryError:
            os._exit(memory.EXIT_CODE)
        except Exception:
            traceback.print_exc()
        os._exit(0)

    def leave(self) -> None:
        """In a process forked by a handler: it must neither speak here nor keep the pipe open."""
        os.close(self._connection.detach())

    def _read(self, stream: BinaryIO) -> None:
        port: PipePort | None = None
        while len(header := stream.read(HEADER.size)) == HEADER.size:
            message = order(stream.read(HEADER.unpack(header)[0]))
            if isinstance(message, Run):
                port = PipePort(message, self._sender(frame_bytes_max(message.bounds)))
                self.attempts.put(port)
            elif port is not None:
                port.hear(message)

    def _sender(self, bytes_max: int) -> Callable[[Report], object]:
        return lambda message: self._connection.sendall(framed(message, bytes_max))


def _serve(port: PipePort) -> None:
    port.begin()
    try:
        outcome: Outcome = perform(port)
    except BaseException as error:
        outcome = Errored(error_info(error, secrets=port.logs.secret_keys))
    # Before the last word: from then on this process may be killed at any moment.
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    port.finish(outcome)


def _die_with_the_worker() -> None:
    """The second line, for a handler that keeps the listening thread from running (by holding the GIL)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _leave_signals_to_the_worker() -> None:
    """A service manager stops all processes at once, but when a handler ends is for the worker to say.

    By functions, not SIG_IGN: that would be inherited by every program a handler starts. What a handler forks gets
    the usual behaviour back, and must not lose a signal that arrives before it has.
    """
    usual = {each: signal.signal(each, _unheard) for each in OWN_SIGNALS}

    def restore() -> None:
        for each, handler in usual.items():
            signal.signal(each, handler)
        _release_signals()

    os.register_at_fork(before=_hold_signals, after_in_parent=_release_signals, after_in_child=restore)


def _unheard(_signal: int, _frame: object) -> None:
    return


def _hold_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, OWN_SIGNALS)


def _release_signals() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, OWN_SIGNALS)
