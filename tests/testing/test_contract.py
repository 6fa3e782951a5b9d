"""The contract suite itself: what it promises to the author of a store."""

from __future__ import annotations

import inspect
import re

import pytest

from ropewalk.domain.jobs.states import LEGAL_MOVES
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
