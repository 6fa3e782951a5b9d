"""Giving space back to the file system after much was deleted."""

from __future__ import annotations

from typing import Final

from ropewalk.backends.sql.tx import Tx

FREE_PAGES_KEPT: Final = 1000
PAGES_GIVEN_BACK: Final = 500

_SPACE: Final = "SELECT freelist_count, page_count FROM pragma_freelist_count, pragma_page_count"


def give_back(tx: Tx) -> None:
    """Shrink the file by a little where much of it is empty; what is only about to be reused stays."""
    space = tx.row(_SPACE)
    assert space is not None
    free_pages, pages = space
    if free_pages > FREE_PAGES_KEPT and free_pages * 4 > pages:
        for _ in range(PAGES_GIVEN_BACK):
            tx.run("PRAGMA incremental_vacuum(1)")  # one by one: Python's own driver stops after the first of many
