"""requirements/install, with a Python that only says what it was asked to do."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.project.tree import ROOT

# Answers like a Python that works, makes an environment out of itself, and writes down every call but the probes.
WORKING = """#!/bin/sh
case "$*" in
    -c*) exit 0 ;;
    --version) echo "Python 3.12.1" ;;
    "-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python && echo "$(pwd -P)/.venv" >.venv/bin/activate ;;
esac
echo "$(basename "$0") $*" >>calls
case "$*" in "-m uv"*) [ ! -e uv-is-broken ] ;; esac
"""
DEAD_SHIM = "#!/bin/sh\necho 'command not found' >&2\nexit 127\n"


class Machine:
    """A tree with the set-up script, on a machine with nothing but these names on its PATH."""

    def __init__(self, place: Path, **pythons: str) -> None:
        self.tree = place / "a tree"
        self.bin = place / "bin"
        self.bin.mkdir()
        shutil.copytree(ROOT / "requirements", self.tree / "requirements")
        shutil.copy(ROOT / "pyproject.toml", self.tree)
        for name, script in pythons.items():
            self.put(name.replace("_", "."), script)

    def put(self, name: str, script: str) -> Path:
        path = self.bin / name
        path.write_text(script)
        path.chmod(0o755)
        return path

    def install(self, lock: str = "runtime", **variables: str) -> subprocess.CompletedProcess[str]:
        env = {"PATH": f"{self.bin}:{self.tools()}", "HOME": str(self.tree), **variables}
        script = self.tree / "requirements" / "install"
        return subprocess.run(["sh", script, lock], env=env, capture_output=True, text=True, check=False)

    def tools(self) -> Path:
        """The few commands the script uses: the real Pythons of this machine stay out of sight."""
        folder = self.bin.parent / "tools"
        if not folder.exists():
            folder.mkdir()
            for name in ("sh", "dirname", "basename", "cat", "cksum", "grep", "mkdir", "cp"):
                (folder / name).symlink_to(shutil.which(name) or name)
        return folder

    def calls(self) -> list[str]:
        log = self.tree / "calls"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return lines


def test_a_fresh_tree_gets_everything_from_the_locks(tmp_path: Path) -> None:
    machine = Machine(tmp_path, python3=WORKING)
    said = machine.install()
    assert said.returncode == 0, said.stderr
    assert said.stdout.splitlines() == [
        "set-up: Python 3.12.1 in .venv",
        "set-up: uv, from requirements/bootstrap.txt",
        "set-up: packages, from requirements/runtime.txt",
        "set-up: ropewalk itself, editable",
    ]
    _, venv, uv, packages, itself = machine.calls()
    assert venv == "python3 -m venv --clear .venv"
    assert uv.endswith("--require-hashes -r requirements/bootstrap.txt")
    assert packages.endswith("--require-hashes requirements/bootstrap.txt requirements/runtime.txt")
    assert itself.endswith("--no-deps --no-build-isolation --editable .")


def test_a_second_run_does_nothing(tmp_path: Path) -> None:
    machine = Machine(tmp_path, python3=WORKING)
    machine.install()
    machine.calls()
    assert machine.install().stdout == ""
    assert machine.calls() == []


def test_a_changed_lock_installs_again_into_the_same_environment(tmp_path: Path) -> None:
    machine = Machine(tmp_path, python3=WORKING)
    machine.install()
    machine.calls()
    with (machine.tree / "requirements" / "runtime.txt").open("a") as lock:
        lock.write("# changed\n")
    assert "packages, from requirements/runtime.txt" in machine.install().stdout
    assert not any("venv --clear" in call for call in machine.calls())


def test_an_environment_that_was_moved_is_made_anew(tmp_path: Path) -> None:
    machine = Machine(tmp_path, python3=WORKING)
    machine.install()
    machine.tree = machine.tree.rename(tmp_path / "moved")
    machine.calls()
    machine.install()
    assert any("venv --clear" in call for call in machine.calls())


def test_an_environment_for_development_stays_one(tmp_path: Path) -> None:
    machine = Machine(tmp_path, python3=WORKING)
    machine.install("dev")
    assert machine.install("runtime").stdout == ""
    with (machine.tree / "pyproject.toml").open("a") as pyproject:
        pyproject.write("# changed\n")
    assert "packages, from requirements/dev.txt" in machine.install("runtime").stdout


def test_names_that_do_not_run_are_passed_over(tmp_path: Path) -> None:
    machine = Machine(tmp_path, python3=DEAD_SHIM, python3_13=DEAD_SHIM, python3_12=WORKING)
    assert machine.install().returncode == 0
    assert "python3.12 -m venv --clear .venv" in machine.calls()


def test_the_named_python_comes_first(tmp_path: Path) -> None:
    machine = Machine(tmp_path, python3=WORKING)
    mine = machine.put("my python", WORKING)
    assert machine.install(PYTHON=str(mine)).returncode == 0
    assert "my python -m venv --clear .venv" in machine.calls()


def test_without_any_python_it_says_what_to_do(tmp_path: Path) -> None:
    said = Machine(tmp_path, python3=DEAD_SHIM).install()
    assert said.returncode == 1
    assert "Python 3.11" in said.stderr
    assert "PYTHON=" in said.stderr


def test_pip_takes_over_when_uv_cannot(tmp_path: Path) -> None:
    machine = Machine(tmp_path, python3=WORKING)
    (machine.tree / "uv-is-broken").touch()
    assert machine.install().returncode == 0
    assert any("-m pip" in call and "-r requirements/runtime.txt" in call for call in machine.calls())


@pytest.mark.parametrize("step", ["venv", "pip"])
def test_a_step_that_fails_is_not_taken_for_done(tmp_path: Path, step: str) -> None:
    machine = Machine(
        tmp_path, python3=WORKING.replace("#!/bin/sh\n", f'#!/bin/sh\ncase "$*" in "-m {step}"*) exit 3 ;; esac\n')
    )
    assert machine.install().returncode == 3
    machine.put("python3", WORKING)
    shutil.rmtree(machine.tree / ".venv", ignore_errors=True)
    assert "ropewalk itself, editable" in machine.install().stdout
