"""SQL in files: what is named is there, what is there is named."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from msgspec import Struct

from ropewalk.backends.sql.blocks import chunk_sizes, for_rows, load, part, statements_in


class Manifest(Struct):
    first: str
    second: str


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "sql_of_a_test" / "sql"
    folder.mkdir(parents=True)
    (tmp_path / "sql_of_a_test" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "sql_of_a_test", raising=False)
    return folder


def test_blocks_of_all_files_become_fields(package: Path) -> None:
    (package / "a.sql").write_text("-- about this file\n\n-- name: first\n-- why\nSELECT 1\nFROM x\n")
    (package / "b.sql").write_text("-- name: second\nSELECT 2\n")
    assert load("sql_of_a_test", Manifest) == Manifest(first="-- why\nSELECT 1\nFROM x", second="SELECT 2")


def test_what_blocks_have_in_common_is_a_part(package: Path) -> None:
    (package / "a.sql").write_text("-- part: both\nb, /* see last */\n\n-- name: first\nSELECT a, /* see both */\n")
    (package / "b.sql").write_text("-- part: last\nc\n-- name: second\nTABLE x WHERE (/* see first */)\n")
    assert load("sql_of_a_test", Manifest) == Manifest(first="SELECT a, b, c", second="TABLE x WHERE (SELECT a, b, c)")


def test_a_part_may_be_made_in_python(package: Path) -> None:
    (package / "a.sql").write_text("-- name: first\nSELECT /* see columns */\n-- name: second\n2\n")
    assert load("sql_of_a_test", Manifest, generated={"columns": "a, b"}).first == "SELECT a, b"


def test_each_block_says_what_belongs_in_the_places_of_a_part(package: Path) -> None:
    (package / "a.sql").write_text(
        "-- part: leased\nat = {now}, until = {now} + {lease}\n"
        "-- name: first\nSET /* see leased\n    now = (SELECT now FROM given)\n    lease = :lease\n    */ WHERE TRUE\n"
        "-- name: second\nSET /* see leased\nnow = ?1\nlease = max(?2, 1) */\n"
    )
    assert load("sql_of_a_test", Manifest) == Manifest(
        first="SET at = (SELECT now FROM given), until = (SELECT now FROM given) + :lease WHERE TRUE",
        second="SET at = ?1, until = ?1 + max(?2, 1)",
    )


def test_a_part_can_be_read_by_itself(package: Path) -> None:
    (package / "a.sql").write_text("-- part: both\nb, /* see last */\n-- part: last\nc\n-- name: first\n1\n")
    assert part("sql_of_a_test", "both") == "b, c"


def test_a_block_may_be_several_statements() -> None:
    assert statements_in("-- why\nLOCK a\n-- then\nSELECT a -- then b\n") == ("-- why\nLOCK a", "SELECT a -- then b")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("-- name: first\nSELECT 1\n", "missing=['second'] unknown=[]"),
        ("-- name: first\n1\n-- name: second\n2\n-- name: third\n3\n", "missing=[] unknown=['third']"),
        ("-- name: first\n1\n-- name: second\n2\n-- name: first\n3\n", "'first' a second time"),
        ("-- name: first\n1\n-- name: second\n2\n-- part: first\n3\n", "'first' a second time"),
        ("-- name: first\n1\n-- name: second\nSELECT /* see third */\n", "says 'see third'"),
        ("-- part: p\n{x}\n-- name: first\n/* see p */\n-- name: second\n2\n", "'see p' with [], which takes ['x']"),
        (
            "-- part: p\n{x}\n-- name: first\n/* see p\ny = 1 */\n-- name: second\n2\n",
            "'see p' with ['y'], which takes ['x']",
        ),
        ("SELECT 0\n-- name: first\n1\n-- name: second\n2\n", "before its first"),
    ],
)
def test_what_does_not_fit_is_refused(package: Path, text: str, told: str) -> None:
    (package / "a.sql").write_text(text)
    with pytest.raises(ImportError) as caught:
        load("sql_of_a_test", Manifest)
    assert told in str(caught.value)


def test_a_marked_group_is_repeated() -> None:
    block = "INSERT INTO t VALUES (?, ?) /* each row */ RETURNING (?)"
    assert for_rows(block, 1) == "INSERT INTO t VALUES (?, ?) RETURNING (?)"
    assert for_rows(block, 3) == "INSERT INTO t VALUES (?, ?), (?, ?), (?, ?) RETURNING (?)"


@pytest.mark.parametrize("rows", [0, 1, 7, 127, 128, 129, 500, 1000])
def test_any_number_of_rows_takes_few_kinds_of_statement(rows: int) -> None:
    sizes = chunk_sizes(rows, 128)
    assert sum(sizes) == rows
    assert set(sizes) <= {1, 2, 4, 8, 16, 32, 64, 128}
    assert len(sizes) <= rows // 128 + 7
