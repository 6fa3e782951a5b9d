"""Submitting jobs."""

from __future__ import annotations

import pytest
from msgspec import structs

from ropewalk.domain.jobs.order import order_key
from ropewalk.domain.jobs.record import CompensationSpec, JobRecord, NewJob
from ropewalk.domain.jobs.retry import Backoff
from ropewalk.domain.jobs.states import Move, State, Status
from ropewalk.domain.time import HOUR, SECOND
from ropewalk.errors import Conflict
from ropewalk.ports.store.capabilities import LIMITS, WORKFLOWS
from ropewalk.ports.store.submission import Accepted, Submission
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench, holder
from ropewalk.testing.contract.builders import gate_on, keyed, new_job

SHARED_FIELDS = frozenset(NewJob.__struct_fields__) & frozenset(JobRecord.__struct_fields__)


class SubmitContract(Contract):
    """Every accepted job is stored whole, in order and exactly once (S1, S2, S9)."""

    async def test_a_job_is_accepted_and_stored_as_submitted(self, bench: Bench) -> None:
        """safe-1: every field of a submission is kept."""
        new = new_job(
            "a",
            input=b'{"x":1}',
            queue="mail",
            priority=7,
            max_attempts=5,
            max_crashes=2,
            timeout_us=9 * SECOND,
            backoff=Backoff.linear(2),
            lease_us=40 * SECOND,
            correlation_id="corr",
            tags={"colour": "red"},
            workflow_id="w1",
            workflow_type="order",
            group_id="g1",
            parent_id="p1",
            spawn_key="s1",
            on_failure=bench.compensation,
            callback_url="https://example.org/done",
            fairness="customer-1",
            trace="00-abc-def-01",
        )
        [accepted] = await bench.submit(new)
        now = bench.runtime.now()
        assert accepted == Accepted(
            id=new.id, duplicate=False, state=State.SCHEDULED, created_at=now, run_at=now, group_id="g1"
        )
        job = await bench.job(new.id)
        for field in SHARED_FIELDS - {"run_at", "deadline"}:
            assert getattr(job, field) == getattr(new, field), field
        assert (job.status, job.rev, job.run, job.attempt, job.fence) == (Status.WAITING, 1, 1, 0, 0)
        assert (job.created_at, job.run_at, job.updated_at) == (now, now, now)

    async def test_a_root_job_is_its_own_group(self, bench: Bench) -> None:
        [accepted] = await bench.submit(new_job())
        assert accepted.group_id == accepted.id

    async def test_answers_and_sequence_follow_the_order_of_submission(self, bench: Bench) -> None:
        """S1: order kept."""
        new = [new_job(id=f"id-{number}") for number in (5, 3, 9, 1)]
        accepted = await bench.submit(*new)
        assert [each.id for each in accepted] == [each.id for each in new]
        jobs = [await bench.job(each.id) for each in new]
        assert [job.seq for job in jobs] == sorted(job.seq for job in jobs)
        assert [job.id for job in await bench.claim(4)] == [each.id for each in new]

    async def test_an_empty_submission_is_accepted(self, bench: Bench) -> None:
        assert await bench.submit() == []
        assert await bench.store.submit([]) == []

    async def test_a_large_batch_is_submitted_whole(self, bench: Bench) -> None:
        """S1: ten thousand at once."""
        accepted = await bench.submit(*(new_job(id=f"id-{number:05}") for number in range(10_000)))
        assert len({each.id for each in accepted}) == 10_000
        assert [job.id for job in await bench.claim(3)] == ["id-00000", "id-00001", "id-00002"]

    async def test_a_repeated_id_with_equal_content_is_a_duplicate(self, bench: Bench) -> None:
        """safe-17: repeating with the same id is safe."""
        new = new_job(input=b"[1]", priority=3)
        await bench.submit(new)
        [again] = await bench.submit(structs.replace(new, priority=9, delay_us=HOUR))
        assert again.duplicate
        assert (again.id, again.state) == (new.id, State.SCHEDULED)
        assert (await bench.job(new.id)).priority == 3, "the repetition changes nothing"

    async def test_every_way_in_answers_when_the_job_was_created(self, bench: Bench) -> None:
        """Of jobs alone, alike, unlike and keyed, and of duplicates: the instant that is stored."""
        alone, several = new_job(), [new_job(delay_us=HOUR), new_job(delay_us=HOUR)]
        unlike = [new_job(), new_job(priority=3, delay_us=HOUR), keyed("k")]
        answers = [*await bench.submit(alone), *await bench.submit(*several), *await bench.submit(*unlike)]
        await bench.runtime.advance(5)
        again = [*await bench.submit(alone), *await bench.submit(*several), *await bench.submit(*unlike)]
        assert [each.duplicate for each in again] == [True] * 6
        for first, second in zip(answers, again, strict=True):
            job = await bench.job(first.id)
            assert (first.created_at, first.run_at) == (job.created_at, job.run_at)
            assert (second.created_at, second.run_at) == (job.created_at, job.run_at)

    @needs(WORKFLOWS, LIMITS)
    async def test_a_repeated_id_says_which_options_are_ignored(self, bench: Bench) -> None:
        """safe-17: a repetition changes nothing, and tells what it would have changed."""
        first = _with_everything()
        await bench.add(id="parent")
        await bench.submit(first)
        await bench.runtime.advance(30)
        before = await bench.job(first.id)
        [same] = await bench.submit(first)
        assert (same.duplicate, same.ignored) == (True, ())
        [bare] = await bench.submit(new_job(first.type, id=first.id, input=first.input))
        assert bare.ignored == tuple(
            sorted(
                (
                    *("backoff", "correlation_id", "deadline", "delay", "fairness", "lease", "limit", "max_attempts"),
                    *("max_crashes", "on_failure", "priority", "queue", "tags", "timeout", "workflow_id"),
                    "workflow_type",
                )
            )
        )
        [gated] = await bench.submit(structs.replace(first, gate=gate_on("parent")))
        assert gated.ignored == ("depends_on",)
        [timed] = await bench.submit(structs.replace(first, run_at=bench.runtime.now() + HOUR, ttl_us=9 * HOUR))
        assert timed.ignored == ("run_at", "ttl")
        assert await bench.job(first.id) == before

    async def test_ignored_options_are_named_for_repetitions_in_a_batch(self, bench: Bench) -> None:
        """Beside what is new, of what is stored and of what the same batch brings."""
        await bench.add(id="a", input=b"[1]")
        answers = await bench.submit(
            new_job(id="a", input=b"[1]", priority=5),
            new_job(id="b", queue="mail"),
            new_job(id="b", delay_us=SECOND),
            new_job(id="c"),
        )
        assert [(each.duplicate, each.ignored) for each in answers] == [
            (True, ("priority",)),
            (False, ()),
            (True, ("delay", "queue")),
            (False, ()),
        ]

    @needs(WORKFLOWS, LIMITS)
    async def test_ignored_options_are_named_for_repeated_keys_and_spawns(self, bench: Bench) -> None:
        await bench.submit(keyed("k", tags={"a": "1"}))
        [again] = await bench.submit(keyed("k", tags={"a": "2"}))
        assert (again.duplicate, again.ignored) == (True, ("tags",))
        parent = await bench.running("parent")
        child = new_job(parent_id=parent.id, spawn_key="one", limit_key="x")
        await bench.submit(child, under=holder(parent))
        [again] = await bench.submit(structs.replace(child, id="other", limit_key=None), under=holder(parent))
        assert (again.id, again.ignored) == (child.id, ("limit",))

    async def test_options_that_are_no_longer_known_are_not_named(self, bench: Bench) -> None:
        """When it was to start is forgotten once it has moved."""
        new = new_job(delay_us=SECOND, ttl_us=HOUR)
        await bench.submit(new)
        await bench.runtime.advance(2)
        await bench.settle(await bench.claim_one(), Move.RETRY, delay_us=HOUR)
        [again] = await bench.submit(new)
        assert (again.duplicate, again.ignored) == (True, ())

    async def test_a_repeated_id_is_a_duplicate_of_a_finished_job_too(self, bench: Bench) -> None:
        """safe-6: it is not run again."""
        new = new_job()
        await bench.submit(new)
        await bench.settle(await bench.claim_one())
        [again] = await bench.submit(new)
        assert (again.duplicate, again.state) == (True, State.COMPLETED)
        assert await bench.claim() == []

    @pytest.mark.parametrize("change", [{"type": "a"}, {"input": b"[2]"}])
    async def test_a_repeated_id_with_other_content_is_a_conflict(
        self, bench: Bench, change: dict[str, object]
    ) -> None:
        """S4."""
        new = new_job(input=b"[1]")
        await bench.submit(new)
        before = await bench.job(new.id)
        answer = await bench.answer(structs.replace(new, **change))
        assert isinstance(answer, Conflict)
        assert new.id in str(answer)
        assert await bench.job(new.id) == before

    async def test_ids_belong_to_their_tenant(self, bench: Bench) -> None:
        """safe-15: another tenant's id is free."""
        await bench.submit(new_job(id="same", tenant="acme", input=b"[1]"))
        [accepted] = await bench.submit(new_job(id="same", tenant="zeta", input=b"[2]"))
        assert not accepted.duplicate
        assert (await bench.job("same", tenant="acme")).input == b"[1]"
        assert (await bench.job("same", tenant="zeta")).input == b"[2]"

    async def test_an_id_repeated_inside_one_submission_is_a_duplicate(self, bench: Bench) -> None:
        """S4: batches with repeats."""
        new = new_job()
        first, second = await bench.submit(new, new)
        assert (first.duplicate, second.duplicate) == (False, True)
        assert len(await bench.claim(5)) == 1

    async def test_one_refused_job_refuses_its_whole_submission(self, bench: Bench) -> None:
        """safe-3: nothing half-written."""
        await bench.submit(new_job(id="taken", input=b"[1]"))
        answer = await bench.answer(new_job(id="x"), new_job(id="taken", input=b"[2]"), new_job(id="y"))
        assert isinstance(answer, Conflict)
        assert (await bench.store.get("default", ["x", "y"])).jobs == {}
        assert [job.id for job in await bench.claim(5)] == ["taken"]

    async def test_a_conflict_inside_one_submission_refuses_it(self, bench: Bench) -> None:
        """safe-3."""
        answer = await bench.answer(new_job(id="x", input=b"[1]"), new_job(id="x", input=b"[2]"))
        assert isinstance(answer, Conflict)
        assert await bench.find("x") is None

    async def test_submissions_of_one_call_are_independent(self, bench: Bench) -> None:
        """S8: shared commits; a refused neighbour changes nothing for the others."""
        await bench.submit(new_job(id="taken", input=b"[1]"))
        good, bad, late = await bench.store.submit(
            [
                Submission(jobs=[new_job(id="a"), new_job(id="b")]),
                Submission(jobs=[new_job(id="c"), new_job(id="taken", input=b"[2]")]),
                Submission(jobs=[new_job(id="d"), new_job(id="a")]),
            ]
        )
        assert isinstance(good, list)
        assert isinstance(bad, Conflict)
        assert isinstance(late, list)
        assert [each.duplicate for each in late] == [False, True], "a later submission sees an earlier one"
        assert sorted((await bench.store.get("default", ["a", "b", "c", "d"])).jobs) == ["a", "b", "d"]

    async def test_delay_and_run_at_decide_when_a_job_starts(self, bench: Bench) -> None:
        """S2: both clamp to now, run_at wins."""
        now = bench.runtime.now()
        later, sooner, wins, past = await bench.submit(
            new_job(delay_us=5 * SECOND),
            new_job(run_at=now + 3 * SECOND),
            new_job(run_at=now + SECOND, delay_us=HOUR),
            new_job(run_at=now - HOUR),
        )
        assert [each.run_at - now for each in (later, sooner, wins, past)] == [5 * SECOND, 3 * SECOND, SECOND, 0]
        assert [each.state for each in (later, sooner, wins, past)] == [State.DELAYED] * 3 + [State.SCHEDULED]

    async def test_the_far_future_is_kept_exactly(self, bench: Bench) -> None:
        """S2: far future."""
        far = bench.runtime.now() + 400 * 365 * 24 * HOUR + 1
        [accepted] = await bench.submit(new_job(run_at=far))
        assert (await bench.job(accepted.id)).run_at == far

    async def test_order_keys_follow_from_priority_and_time(self, bench: Bench) -> None:
        """S3."""
        aged = await bench.job(await bench.add(priority=-1000, delay_us=SECOND))
        strict = await bench.job(await bench.add(priority=5, strict_order=True))
        for job in (aged, strict):
            assert (job.prio_key, job.time_key) == order_key(job.priority, job.run_at, job.flags)
        assert strict.prio_key == -5

    async def test_ttl_becomes_a_deadline_and_a_deadline_wins(self, bench: Bench) -> None:
        """R7."""
        now = bench.runtime.now()
        ttl = await bench.job(await bench.add(ttl_us=HOUR))
        both = await bench.job(await bench.add(ttl_us=HOUR, deadline=now + SECOND))
        neither = await bench.job(await bench.add())
        assert (ttl.deadline, both.deadline, neither.deadline) == (now + HOUR, now + SECOND, None)

    async def test_changing_a_submitted_job_changes_nothing_stored(self, bench: Bench) -> None:
        """safe-1: nothing changes behind the store's back."""
        tags = {"a": "1"}
        job_id = await bench.add(tags=tags)
        tags["a"] = "2"
        seen = await bench.job(job_id)
        assert seen.tags == {"a": "1"}
        seen.tags["a"] = "3"
        seen.priority = 99
        again = await bench.job(job_id)
        assert (again.tags, again.priority) == ({"a": "1"}, 0)


def _with_everything() -> NewJob:
    """A job with a value of its own for every option that a record keeps."""
    return new_job(
        "a",
        input=b'{"x":1}',
        queue="mail",
        priority=7,
        delay_us=SECOND,
        ttl_us=HOUR,
        max_attempts=5,
        max_crashes=2,
        timeout_us=9 * SECOND,
        backoff=Backoff.linear(2),
        lease_us=40 * SECOND,
        correlation_id="corr",
        tags={"colour": "red"},
        workflow_id="w1",
        workflow_type="order",
        on_failure=CompensationSpec(type="undo", accepts=("x",), defaults=b"{}"),
        fairness="label",
        limit_key="stripe",
    )
