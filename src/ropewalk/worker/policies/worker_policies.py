"""The policies of one worker, put together from its options and those of its types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ropewalk.definitions.policies import Concurrency, Ordered, Unlimited
from ropewalk.definitions.registry import Registry
from ropewalk.worker.buffer import Buffer
from ropewalk.worker.context import WorkerContext
from ropewalk.worker.executor import Executor
from ropewalk.worker.policies.admission import Accept, Admission
from ropewalk.worker.policies.backlog import Alarm, BacklogAlarm
from ropewalk.worker.policies.backpressure import AdaptiveDelay, Backpressure, Hook
from ropewalk.worker.policies.order import Arrangement, order_of
from ropewalk.worker.policies.ordered_buffer import OrderedBuffer
from ropewalk.worker.settler import Settler

FREE_SLOTS: Final = 100
"""A worker without a bound on concurrency tries to have this many free slots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPolicies:
    """The policies of one worker; None or 0 means that it has no policy of that kind."""

    admission: Admission | None = None
    pressure: Backpressure | None = None
    alarm: Alarm | None = None
    ahead: int = 0
    """The buffer contains this many jobs, however long they take, so that an order has jobs to choose from."""
    free_slots: int | None = None
    """A worker without a bound on concurrency tries to have this many free slots; None for every other worker."""


def policies_of(
    worker_context: WorkerContext,
    buffer: Buffer,
    executor: Executor,
    settler: Settler,
    *,
    concurrency: Concurrency,
    accept: Accept | None,
    backpressure: Hook | AdaptiveDelay | None,
    backlog_alarm: BacklogAlarm | None,
) -> WorkerPolicies:
    admission = Admission(worker_context, buffer, executor, settler, concurrency=concurrency, accept=accept)
    return WorkerPolicies(
        admission=admission if admission else None,
        pressure=None if backpressure is None else Backpressure(worker_context, backpressure),
        alarm=None if backlog_alarm is None else Alarm(worker_context, backlog_alarm),
        ahead=max(map(_ahead, (concurrency, *_of_types(worker_context.registry).values()))),
        free_slots=FREE_SLOTS if isinstance(concurrency, Unlimited) else None,
    )


def buffer_of(concurrency: Concurrency, registry: Registry) -> Buffer:
    """Returns the buffer of a worker: jobs start in the order of their tickets, unless a policy asks for another
    one."""
    own = _of_types(registry)
    orders = {name: order for name, each in own.items() if (order := order_of(each)) is not None}
    most = {name: each.max for name, each in own.items() if isinstance(each, Ordered)}
    arrangement = Arrangement(order_of(concurrency), orders, most)
    return OrderedBuffer(arrangement) if arrangement else Buffer()


def _of_types(registry: Registry) -> dict[str, Concurrency]:
    return {each.name: each.options.concurrency for each in registry if each.options.concurrency is not None}


def _ahead(concurrency: Concurrency) -> int:
    return (concurrency.ahead or 0) if isinstance(concurrency, Ordered) else 0
