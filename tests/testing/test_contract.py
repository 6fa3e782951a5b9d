"""The contract suite itself: what it promises to the author of a store."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys

import pytest

from ropewalk.domain.jobs.states import LEGAL_MOVES
from ropewalk.ports.store.capabilities import LIMITS
from ropewalk.testing import contract
from ropewalk.testing.contract.base import Contract
from ropewalk.testing.contract.moves import BY_DAMAGE, WAYS

PROVES = re.compile(r"\b(safe-\d+|live-\d+|rule \d+|[A-Z]\d{1,2}|storage\.md|model\.md)\b")


def test_every_test_names_what_it_proves() -> None:
    """V1: by its own docstring or that of its family."""
    silent = [
        f"{family.__name__}.{name}"
        for family in contract.StoreContract.__mro__
        for name, test in vars(family).items()
        if name.startswith("test_") and not PROVES.search(f"{inspect.getdoc(test) or ''} {family.__doc__ or ''}")
    ]
    assert silent == []


def test_every_legal_move_has_a_way_to_ask_for_it() -> None:
    """safe-2: a new row of the table must be walked too."""
    steps = {(move, before, after) for move, pairs in LEGAL_MOVES.items() for before, after in pairs}
    steps = {step for step in steps if step[0] is not BY_DAMAGE}  # damage is done to rows by each store's own tests
    assert set(WAYS) == steps


def test_a_name_used_by_two_families_is_refused() -> None:
    class One(Contract):
        async def test_it(self) -> None: ...

    class Two(Contract):
        async def test_it(self) -> None: ...

    with pytest.raises(AssertionError, match="One and Two both define test_it"):
        type("Both", (One, Two), {})


def test_it_costs_nothing_at_run_time() -> None:
    """An app that runs loads nothing of it, nor of what it needs, nor looks for backends of others."""
    asked = "import sys, ropewalk; ropewalk.App('memory://'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    costly = ("ropewalk.testing", "pytest", "hypothesis", "importlib.metadata")
    assert [name for name in loaded if name.startswith(costly)] == []
    assert "ropewalk.ports.store.capabilities" in loaded


def test_a_store_gets_the_tests_that_its_capabilities_are_enough_for() -> None:
    """Nothing is skipped: what is for other stores is not there. Cases of one test are told apart, too."""

    class Everything(contract.StoreContract):
        pass

    class CoreOnly(contract.StoreContract):
        capabilities = frozenset()

    class Limited(contract.StoreContract):
        capabilities = frozenset({LIMITS})

    for name, owners in (
        ("test_a_job_is_accepted_and_stored_as_submitted", {Everything, CoreOnly, Limited}),
        ("test_claims_that_race_never_exceed_a_limit", {Everything, Limited}),
        ("test_a_job_that_sleeps_or_waits_counts_under_no_limit", {Everything}),
    ):
        found = {each for each in (Everything, CoreOnly, Limited) if getattr(each, name) is not None}
        assert found == owners, name
    repeated = [_cases(each, "test_a_verb_whose_answer_was_lost_is_repeated") for each in (CoreOnly, Limited)]
    assert repeated[1] - repeated[0] == {"put a limit", "remove a limit"}
    assert "cancel a group" not in repeated[1]
    assert "cancel a group" in _cases(Everything, "test_a_verb_whose_answer_was_lost_is_repeated")


def _cases(family: type, test: str) -> set[object]:
    [mark] = [mark for mark in getattr(family, test).pytestmark if mark.name == "parametrize"]
    return {getattr(each, "values", (each,))[0] for each in mark.args[1]}
