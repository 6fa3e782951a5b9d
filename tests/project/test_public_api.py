"""A change of the public API is made on purpose: it is a change of public_api.txt, which a reviewer reads."""

from __future__ import annotations

from tests.project.public_api import WRITTEN, as_text


def test_the_public_api_is_the_one_that_was_written_down() -> None:
    assert as_text().splitlines() == WRITTEN.read_text(encoding="utf-8").splitlines(), "make api writes it anew"
