"""URLs of backends that other packages bring: found by their entry points."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ropewalk import App, InvalidInput, job

MODULE = """
from ropewalk.backends.memory import MemoryStore

asked = []

class TheirStore(MemoryStore):
    name = "theirs"

def from_url(url, runtime, *, allow_weaker_durability, migrate):
    asked.append((url, allow_weaker_durability, migrate))
    return TheirStore(runtime)

no_function = 7
"""

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Lay down what an installer would: a module, and the metadata of its distribution."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "their_backend", raising=False)
    (tmp_path / "their_backend.py").write_text(MODULE)

    def install(*entry_points: str, package: str = "theirs") -> None:
        metadata = tmp_path / f"{package}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = "\n".join(entry_points)
        (metadata / "entry_points.txt").write_text(f"[ropewalk.backends]\n{lines}\n")

    return install


@job
async def add(a: int, b: int) -> int:
    return a + b


async def test_a_scheme_that_a_package_brings(install: Install) -> None:
    install("theirs = their_backend:from_url")
    app = App("theirs://me:secret@there/x?y=z", jobs=[add], migrate=False)
    async with app.running():
        assert await app.enqueue(add(1, 2)).result(timeout=10) == 3
    assert app.url == "theirs://me:***@there/x?y=z"
    assert sys.modules["their_backend"].asked == [("theirs://me:secret@there/x?y=z", False, False)]


def test_an_unknown_scheme_names_those_that_are_known(install: Install) -> None:
    install("theirs = their_backend:from_url")
    known = (
        r"url='nowhere://me:\*\*\*@x' has an unknown scheme: use one of memory://, sqlite:///relative.db, .*, "
        r"theirs://, or install a package with an entry point 'nowhere' in the group 'ropewalk.backends'"
    )
    with pytest.raises(InvalidInput, match=known) as caught:
        App("nowhere://me:secret@x")
    assert caught.value.field == "url"


def test_a_bundled_scheme_cannot_be_taken_over(install: Install) -> None:
    install("memory = their_backend:from_url")
    App("memory://")
    assert "their_backend" not in sys.modules


def test_two_packages_that_bring_one_scheme_are_named(install: Install) -> None:
    install("theirs = their_backend:from_url")
    install("theirs = another_backend:from_url", package="others")
    with pytest.raises(InvalidInput, match="another_backend:from_url and their_backend:from_url both name the scheme"):
        App("theirs://x")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("missing_module:from_url", r"needs 'missing_module:from_url', which cannot be imported \(No module named"),
        ("their_backend:nothing", r"needs 'their_backend:nothing', which cannot be imported"),
        ("their_backend:no_function", r"needs 'their_backend:no_function', which is no function"),
    ],
)
def test_a_broken_entry_point_is_named(install: Install, target: str, message: str) -> None:
    install(f"theirs = {target}")
    with pytest.raises(InvalidInput, match=message):
        App("theirs://x")
