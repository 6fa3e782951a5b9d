"""The app's classifier in a handler's process: found by its name, asked where the type has none."""

from __future__ import annotations

import pytest

from ropewalk.definitions.options import Classifier
from ropewalk.domain.jobs.outcome import Aborted, Errored, Outcome
from tests.runners import app_classifier, handlers
from tests.runners.conftest import MakePool, Troubles
from tests.runners.recording import Recording


@pytest.mark.parametrize("decide", [app_classifier.by_kind, app_classifier.Rules.all_final])
async def test_it_is_asked_there(decide: Classifier, make_pool: MakePool, troubles: Troubles) -> None:
    outcome = await make_pool(decide=decide).run(Recording(handlers.breaks))
    assert isinstance(outcome, Aborted)
    assert outcome.error.type == "KeyError"
    assert troubles == []


@pytest.mark.parametrize(("attempt", "outcome"), [(2, Errored), (3, Aborted)])
async def test_it_is_told_the_attempt_there(make_pool: MakePool, attempt: int, outcome: type[Outcome]) -> None:
    of_the_app = Recording(handlers.breaks)
    of_the_type = Recording(handlers.classified_by_attempt)
    of_the_app.job.attempt = of_the_type.job.attempt = attempt
    assert isinstance(await make_pool(decide=app_classifier.at_the_third).run(of_the_app), outcome)
    assert isinstance(await make_pool().run(of_the_type), outcome)


async def test_a_type_has_its_own(make_pool: MakePool, troubles: Troubles) -> None:
    pool = make_pool(decide=app_classifier.Rules.all_final)
    assert isinstance(await pool.run(Recording(handlers.badly_classified)), Errored)
    assert [phase for _, phase in troubles] == ["decide of badly_classified"]


async def test_one_that_raises_is_reported_in_the_worker(make_pool: MakePool, troubles: Troubles) -> None:
    assert isinstance(await make_pool(decide=app_classifier.broken).run(Recording(handlers.breaks)), Errored)
    ((error, phase),) = troubles
    assert "in the handler's process: RuntimeError: cannot classify KeyError" in str(error)
    assert phase == "decide of the app"


@pytest.mark.parametrize(
    "decide", [app_classifier.nameless, app_classifier.partial, app_classifier.Rules().unbound, lambda _error: "abort"]
)
async def test_one_without_a_name_is_told_of_once(decide: Classifier, make_pool: MakePool, troubles: Troubles) -> None:
    pool = make_pool(decide=decide)
    for _ in range(2):
        assert isinstance(await pool.run(Recording(handlers.breaks)), Errored)
    ((error, phase),) = troubles
    assert "no other process can find: handlers with executor='process' go without it" in str(error)
    assert phase == "decide of the app"


async def test_one_that_is_not_there(make_pool: MakePool, troubles: Troubles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROPEWALK_TEST_HIDE_CLASSIFIER", "yes")
    outcome = await make_pool(decide=app_classifier.only_here).run(Recording(handlers.breaks))
    assert isinstance(outcome, Errored)
    assert outcome.error.type == "KeyError"
    assert "tests.runners.app_classifier.only_here, which is None here" in str(troubles[0][0])
