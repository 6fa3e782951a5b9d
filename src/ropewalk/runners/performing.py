"""One attempt in the handler's process: load, decode, call, encode, judge. Every way it can end is an outcome."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine
from typing import Any, cast

from ropewalk.definitions.context.context import Context, activate, deactivate
from ropewalk.definitions.results.classify import bad_input, described, verdict
from ropewalk.definitions.results.returned import fold_of, outcome_of_return
from ropewalk.domain.failure import Category
from ropewalk.domain.jobs.outcome import Cancelled, Outcome
from ropewalk.errors import Abort, DefinitionError, InvalidInput, JobCancelled
from ropewalk.runners import memory
from ropewalk.runners.classifier import classifier_at
from ropewalk.runners.pipe_port import PipePort
from ropewalk.runners.source import load, not_found


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
        if isinstance(error, JobCancelled) and port.cancellation() is not None:
            return Cancelled(described(error, Category.CANCELLED))
        decide = None if port.order.decide is None else classifier_at(port.order.decide)
        outcome = verdict(error, port.job_type, port.report, app_decide=decide)
        bound = port.order.memory_mb
        return outcome if bound is None or not isinstance(error, MemoryError) else memory.told(outcome, bound)


def _called(port: PipePort, arguments: dict[str, object]) -> Outcome:
    job_type, context = port.job_type, Context(port)
    token = activate(context)
    try:
        value = job_type.handler(*((context,) if job_type.takes_context else ()), **arguments)
        if inspect.iscoroutine(value):
            value = asyncio.run(cast("Coroutine[Any, Any, object]", value))
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
    return outcome_of_return(job_type, context, value, port.order.limits, strict=port.order.defaults.strict_return)
