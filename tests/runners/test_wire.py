"""Messages survive the way over the pipe; what is none is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ropewalk import (
    AppDefaults,
    Backoff,
    Bounds,
    InvalidInput,
    LeaseLost,
    LimitExceeded,
    QuotaExceeded,
    RopewalkError,
    SpawnMismatch,
)
from ropewalk.definitions.context.attempt_port import Cancellation
from ropewalk.domain.failure import Category, ErrorInfo
from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.jobs.outcome import (
    Aborted,
    Cancelled,
    Completed,
    Crashed,
    Deferred,
    Errored,
    Expired,
    Outcome,
    Released,
    Suspended,
)
from ropewalk.domain.jobs.record import CompensatedJob, CompensationSpec, NewJob, new_record
from ropewalk.domain.workflow.completion import CompletionPlan, StepRecord, Suspension
from ropewalk.domain.workflow.dependency import Edge, Ending, NewGate, ParentKind, ParentRef
from ropewalk.domain.workflow.group_value import Contribution
from ropewalk.ports.store.workflows import Dependency
from ropewalk.runners.frames import (
    HEADER,
    InvalidMessage,
    body_length,
    decode_handler_message,
    decode_worker_message,
    frame_of,
)
from ropewalk.runners.messages import (
    Answer,
    Cancel,
    Done,
    RecordStep,
    Run,
    Steps,
    TakeSignal,
    done,
    exception_of,
    outcome_of,
    refusal,
)
from ropewalk.runners.source import Source

ERROR = ErrorInfo(category=Category.TEMPORARY, message="no", code="c", traceback="t", context={"a": "b"})
BOUND = 10_000
GATE = NewGate(parents=(ParentRef(ParentKind.TREE, "a"),), need=1, of="done", policy="skip", timeout_us=3)
EDGE = Edge(kind=ParentKind.CHAIN, parent=2, parent_id="p", seq=3, position=0, ending=Ending.FAILED)
STEP = StepRecord(position=1, name="s", kind="step", value=b"\xff", until=3, finished=False)

OUTCOMES: list[Outcome] = [
    Completed(b"\x00\xff"),
    Completed(None),
    Errored(ERROR, 7),
    Crashed(ERROR),
    Aborted(ERROR),
    Deferred(delay_us=1),
    Deferred(at=2),
    Expired(),
    Suspended(Suspension(position=1, name="sleep-1", span_us=5)),
    Suspended(Suspension(position=2, name="wait_for-a-1", signal="a", until=7)),
    Completed(
        b"1",
        CompletionPlan(
            children=(NewJob(id="a", type="t", input=b"{}"), NewJob(id="b", type="t", input=b"{}", gate=GATE)),
            continuation=NewJob(id="c", type="t", input=b"\xff"),
            contribution=Contribution(type="t", value=b"1", reducer="sum"),
        ),
    ),
    Cancelled(ERROR),
    Cancelled(),
    Released(5),
]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=repr)
def test_every_outcome(outcome: Outcome) -> None:
    message = decode_handler_message(frame_of(done(outcome), BOUND)[HEADER.size :])
    assert isinstance(message, Done)
    assert outcome_of(message) == outcome


def test_a_whole_job() -> None:
    new = NewJob(
        id="a",
        type="t",
        input=b"\xff",
        backoff=Backoff.constant(1),
        tags={"k": "v"},
        on_failure=CompensationSpec(type="u", on_failure=CompensationSpec(type="w")),
        origin=CompensatedJob(id="o", run=1, type="p", input=b"{}", error=ERROR, started=True),
    )
    sent = Run(
        job=new_record(new, seq=3, now=5),
        source=Source(name="t", module="m", qualname="q"),
        bounds=Bounds(),
        defaults=AppDefaults(),
        idempotency_key="a:1",
        now=7,
        dependencies=[Dependency(edge=EDGE, job=new_record(new, seq=2, now=4)), Dependency(edge=EDGE, job=None)],
        types={"t": Source(name="t", module="m", qualname="q")},
    )
    assert decode_worker_message(frame_of(sent, BOUND)[HEADER.size :]) == sent


@pytest.mark.parametrize("sent", [Steps(1), RecordStep(2, STEP), TakeSignal(3, STEP, "go")], ids=repr)
def test_calls_about_steps(sent: Steps | RecordStep | TakeSignal) -> None:
    assert decode_handler_message(frame_of(sent, BOUND)[HEADER.size :]) == sent


@pytest.mark.parametrize(("value", "kind"), [([STEP], list[StepRecord]), (STEP, StepRecord | None), (None, Any)])
def test_answers_are_converted_by_who_asked(value: object, kind: Any) -> None:
    answer = decode_worker_message(frame_of(Answer(1, value), BOUND)[HEADER.size :])
    assert isinstance(answer, Answer)
    assert msgspec.convert(answer.value, kind) == value


def test_a_cancellation() -> None:
    sent = Cancel(Cancellation(LossReason.SHUTDOWN, None))
    assert decode_worker_message(frame_of(sent, BOUND)[HEADER.size :]) == sent


def test_both_sides_of_the_bound() -> None:
    message = done(Completed(b"x" * 100))
    size = len(frame_of(message, BOUND)) - HEADER.size
    assert frame_of(message, size)
    with pytest.raises(LimitExceeded, match=f"done takes {size} bytes"):
        frame_of(message, size - 1)
    assert body_length(HEADER.pack(size), size) == size
    with pytest.raises(InvalidMessage, match=f"announced a message of {size} bytes"):
        body_length(HEADER.pack(size), size - 1)


@pytest.mark.parametrize("body", [b"", b"\x01", b"\x81\xa4type\xa7Strange", b"\xc1"])
def test_what_is_no_message(body: bytes) -> None:
    with pytest.raises(InvalidMessage):
        decode_handler_message(body)


def test_what_is_no_outcome() -> None:
    with pytest.raises(Exception, match="'Exploded' is no outcome"):
        outcome_of(Done("Exploded", b""))


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput("a", field="f"),
        LeaseLost("b", reason="r"),
        QuotaExceeded("c", limit="l", current=1, maximum=2, retry_after=0.5),
        SpawnMismatch("d"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_come_back_as_they_were(error: RopewalkError) -> None:
    again = exception_of(refusal(1, error))
    assert type(again) is type(error)
    assert (str(again), vars(again)) == (str(error), vars(error))


def test_a_strangers_error_is_named() -> None:
    again = exception_of(refusal(1, ZeroDivisionError("by zero")))
    assert type(again) is RuntimeError
    assert str(again) == "ZeroDivisionError in the worker: by zero"
