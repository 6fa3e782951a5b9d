"""Every way a handler can end in its own process arrives as an outcome."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from ropewalk import Bounds
from ropewalk.domain.failure import Category
from ropewalk.domain.jobs.outcome import Aborted, Completed, Deferred, Errored, Misfit
from ropewalk.domain.time import SECOND, to_instant
from ropewalk.runners.processes import ProcessPool
from tests.runners import handlers
from tests.runners.conftest import MakePool, Troubles
from tests.runners.recording import Recording


async def test_a_result(pool: ProcessPool) -> None:
    assert await pool.run(Recording(handlers.add, a=1, b=2)) == Completed(b"3")


async def test_typed_values_both_ways(pool: ProcessPool) -> None:
    order = handlers.Order(1, Decimal("9.90"), datetime(2030, 1, 1, tzinfo=UTC), {"new"})
    outcome = await pool.run(Recording(handlers.discount, order=order, by=Decimal("0.40")))
    assert isinstance(outcome, Completed)
    assert handlers.discount.decode_result(outcome.result) == handlers.Order(
        1, Decimal("9.50"), datetime(2030, 1, 2, tzinfo=UTC), {"new", "discounted"}
    )


async def test_no_result(pool: ProcessPool) -> None:
    assert await pool.run(Recording(handlers.nothing)) == Completed(None)


async def test_a_wrapped_result(pool: ProcessPool) -> None:
    assert await pool.run(Recording(handlers.wrapped)) == Completed(b"3")


async def test_a_forgotten_result(make_pool: MakePool) -> None:
    pool = make_pool()
    outcome = await pool.run(Recording(handlers.forgets_result))
    assert isinstance(outcome, Errored)
    assert "not returned" in outcome.error.message
    assert await pool.run(Recording(handlers.may_forget_result)) == Completed(b"4")
    lenient = make_pool(strict_return=False)
    assert await lenient.run(Recording(handlers.forgets_result)) == Completed(b"4")


async def test_the_context_is_the_attempts(pool: ProcessPool) -> None:
    outcome = await pool.run(Recording(handlers.who_am_i))
    assert outcome == Completed(b'["the-job","the-job","the-job:1","1","default"]')


async def test_a_coroutine_is_awaited(pool: ProcessPool) -> None:
    assert await pool.run(Recording(handlers.asynchronous)) == Completed(b"3")


async def test_an_error_with_its_traceback(pool: ProcessPool) -> None:
    outcome = await pool.run(Recording(handlers.breaks))
    assert isinstance(outcome, Errored)
    error = outcome.error
    assert (error.category, error.type, error.message) == (Category.TEMPORARY, "KeyError", "'missing'")
    assert error.traceback is not None
    assert "_deeper" in error.traceback
    assert "handlers.py" in error.traceback


async def test_an_error_whose_message_is_no_text(pool: ProcessPool) -> None:
    outcome = await pool.run(Recording(handlers.unspeakable))
    assert isinstance(outcome, Errored)
    assert outcome.error.message == "not text: \\udcff"


async def test_abort(pool: ProcessPool) -> None:
    outcome = await pool.run(Recording(handlers.aborts))
    assert isinstance(outcome, Aborted)
    assert (outcome.error.type, outcome.error.message) == ("ValueError", "never")


async def test_defer(pool: ProcessPool) -> None:
    at = datetime(2040, 1, 1, tzinfo=UTC)
    assert await pool.run(Recording(handlers.defers, seconds=7, at=None)) == Deferred(delay_us=7 * SECOND)
    assert await pool.run(Recording(handlers.defers, seconds=None, at=at)) == Deferred(at=to_instant(at, "at"))


async def test_retry(pool: ProcessPool) -> None:
    outcome = await pool.run(Recording(handlers.retries, after=3))
    assert isinstance(outcome, Errored)
    assert outcome.after_us == 3 * SECOND


async def test_a_retry_in_the_past_is_now(pool: ProcessPool) -> None:
    outcome = await pool.run(Recording(handlers.retries, after=-3))
    assert isinstance(outcome, Errored)
    assert outcome.after_us == 0


async def test_an_exit_is_an_error_of_the_handler(pool: ProcessPool) -> None:
    outcome = await pool.run(Recording(handlers.exits))
    assert isinstance(outcome, Errored)
    assert outcome.error.type == "SystemExit"


async def test_the_types_options_classify(pool: ProcessPool) -> None:
    assert isinstance(await pool.run(Recording(handlers.divides)), Aborted)


async def test_a_broken_classifier_is_reported_in_the_worker(pool: ProcessPool, troubles: Troubles) -> None:
    outcome = await pool.run(Recording(handlers.badly_classified))
    assert isinstance(outcome, Errored)
    ((error, phase),) = troubles
    assert "cannot classify OSError('disk on fire')" in str(error)
    assert phase == "decide of badly_classified"


async def test_input_that_does_not_fit(pool: ProcessPool) -> None:
    attempt = Recording(handlers.add, a=1, b=2)
    attempt.job.input = b'{"a":1,"b":"two"}'
    outcome = await pool.run(attempt)
    assert isinstance(outcome, Misfit)
    assert (outcome.error.code, outcome.delay_us) == ("bad_input", None)


async def test_a_result_that_does_not_fit(pool: ProcessPool) -> None:
    outcome = await pool.run(Recording(handlers.wrong_return))
    assert isinstance(outcome, Aborted)
    assert outcome.error.code == "bad_result"


@pytest.mark.parametrize(("size", "fits"), [(98, True), (99, False)])
async def test_an_oversize_result(make_pool: MakePool, size: int, fits: bool) -> None:
    pool = make_pool(bounds=Bounds(result_bytes_max=100))
    outcome = await pool.run(Recording(handlers.big, size=size))
    if fits:
        assert isinstance(outcome, Completed)
    else:
        assert isinstance(outcome, Aborted)
        assert "result_bytes_max=100" in outcome.error.message


async def test_the_largest_result_the_limits_allow(make_pool: MakePool) -> None:
    size = 40 * 1024 * 1024
    pool = make_pool(bounds=Bounds(result_bytes_max=size + 2))
    outcome = await pool.run(Recording(handlers.big, size=size))
    assert isinstance(outcome, Completed)
    assert len(outcome.result or b"") == size + 2


async def test_output_passes_through(
    pool: ProcessPool, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    await pool.run(Recording(handlers.prints, text="hello from there"))
    assert capfd.readouterr() == ("hello from there", "hello from there")
