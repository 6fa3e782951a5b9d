"""`module:app`: the current directory is on the path, and whatever is wrong with it is said in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run

BROKEN = {
    "misses_a_module": "import not_installed_anywhere\n",
    "raises": "1 / 0\n",
    "raises_elsewhere": "import json\n\njson.loads('x')\n",
    "is_no_python": "def\n",
    "declares_wrongly": "from ropewalk import App, job\n\n@job\ndef f(*args): ...\n\napp = App(jobs=[f])\n",
    "has_two": "from ropewalk import App\nfirst = App('memory://')\nsecond = App('memory://')\n",
    "has_a_worker": (
        "from ropewalk import App, job\n\n@job\ndef f() -> None: ...\n\n"
        "app = App('memory://', jobs=[f])\nmail = app.worker()\n"
    ),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, source in BROKEN.items():
        (tmp_path / f"{name}.py").write_text(source)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("shop", "'shop' is not module:attribute, like shop.jobs:app"),
        (":app", "':app' is not module:attribute"),
        ("nowhere:app", "there is no module 'nowhere' in "),
        ("nowhere.jobs:app", "there is no module 'nowhere' in "),
        ("has_two:app", "module 'has_two' has no attribute 'app' (its apps: first, second)"),
        ("has_two:App", "has_two:App is a type, not a ropewalk.App or a worker of one (its apps: first, second)"),
        ("has_a_worker:post", "module 'has_a_worker' has no attribute 'post' (its apps: app; its workers: mail)"),
        ("has_a_worker:f", "has_a_worker:f is a JobType, not a ropewalk.App or a worker of one (its apps: app; its "),
        ("misses_a_module:app", "importing 'misses_a_module' needs a module that is not installed: No module named"),
        ("declares_wrongly:app", "importing 'declares_wrongly': "),
        ("raises:app", "importing 'raises' failed: ZeroDivisionError: division by zero ("),
        ("raises_elsewhere:app", "importing 'raises_elsewhere' failed: JSONDecodeError: "),
        ("is_no_python:app", "importing 'is_no_python' failed: SyntaxError: "),
    ],
)
def test_what_is_wrong_is_said_in_one_line(path: str, said: str, project: Path, ropewalk: Run) -> None:
    answer = ropewalk("worker", path, cwd=project)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"error: {said}")
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("has_a_worker:mail", "has_a_worker:mail is a Worker, not a ropewalk.App (its apps: app)"),
        ("has_a_worker:post", "module 'has_a_worker' has no attribute 'post' (its apps: app)"),
    ],
)
def test_what_is_about_an_app_takes_no_worker(path: str, said: str, project: Path, ropewalk: Run) -> None:
    answer = ropewalk("jobs", "list", "--app", path, cwd=project)
    assert (answer.code, answer.out, answer.err) == (2, "", f"error: {said}\n")


def test_a_wrong_declaration_is_placed(project: Path, ropewalk: Run) -> None:
    assert "declares_wrongly.py:" in ropewalk("worker", "declares_wrongly:app", cwd=project).err


@pytest.mark.parametrize(
    ("name", "place"),
    [("raises", "raises.py:1)"), ("raises_elsewhere", "raises_elsewhere.py:3)"), ("is_no_python", "line 1)")],
)
def test_an_error_is_placed_in_the_users_own_module(name: str, place: str, project: Path, ropewalk: Run) -> None:
    assert ropewalk("jobs", "list", "--app", f"{name}:app", cwd=project).err.endswith(f"{place}\n")


def test_an_app_in_the_current_directory_is_found(ropewalk: Run) -> None:
    answer = ropewalk("jobs", "list", "--app", "shop:app")
    assert (answer.code, answer.out, answer.err) == (0, "no jobs match\n", "")
