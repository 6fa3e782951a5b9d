"""Statements and partial indexes name a number that the domain decides."""

from __future__ import annotations

import pytest

from ropewalk.backends.postgres.statements import SQL as POSTGRES
from ropewalk.backends.sqlite.statements import SQL as SQLITE
from ropewalk.domain.jobs.flags import MAY_BE_NEEDED


@pytest.mark.parametrize("sql", [SQLITE, POSTGRES], ids=["sqlite", "postgres"])
def test_which_results_others_may_need(sql: object) -> None:
    for name in ("old_results", "old_shared_results"):
        assert f"flags & {MAY_BE_NEEDED}" in getattr(sql, name)
