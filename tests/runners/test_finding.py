"""A handler's process finds its type where the worker's registry has it from, or says why it cannot."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

from ropewalk import DefinitionError, job
from ropewalk.domain.failure import Category
from ropewalk.domain.jobs.outcome import Aborted
from ropewalk.runners.processes import ProcessPool
from ropewalk.runners.source import Source, load_job_type, source_of
from tests.runners import broken_module
from tests.runners.recording import Recording

SCRIPT = """
    import asyncio
    from ropewalk import App, Context, job

    @job
    async def child(number: int) -> int:
        return number

    @job(executor="process")
    def double(ctx: Context, number: int) -> str:
        return f"{2 * number} {len(ctx.sync.spawn(child(number=1)))} {__name__}"

    app = App("memory://", jobs=[double, child])

    async def main() -> None:
        print("started", flush=True)
        async with app.running():
            print(await app.enqueue(double(number=21)).result(timeout=20))
"""
GUARDED = (
    SCRIPT
    + """
    if __name__ == "__main__":
        asyncio.run(main())
"""
)
UNGUARDED = (
    SCRIPT
    + """
    asyncio.run(main())
"""
)


def run(*command: str, cwd: Path, typed: str | None = None) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, *command]
    return subprocess.run(program, cwd=cwd, capture_output=True, text=True, timeout=60, check=False, input=typed)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "my_script.py"
    path.write_text(textwrap.dedent(GUARDED))
    return path


def test_a_type_in_a_script(script: Path) -> None:
    ran = run(str(script), cwd=Path("/"))
    assert (ran.stdout, ran.stderr) == ("started\n42 36 __mp_main__\n", "")


COMPANION = """
    import multiprocessing
    from ropewalk import job

    @job(executor="process")
    def cores() -> int:
        return multiprocessing.cpu_count()
"""
ACCOMPANIED = """
    import asyncio
    from companion import cores
    from ropewalk import App, job

    @job(executor="process")
    def name() -> str:
        return __name__

    app = App("memory://", jobs=[cores, name])

    async def main() -> None:
        async with app.running(concurrency=1):
            print(await app.enqueue(cores()).result(timeout=20) > 0, await app.enqueue(name()).result(timeout=20))

    if __name__ == "__main__":
        asyncio.run(main())
"""


def test_a_type_in_a_script_after_one_that_imports_multiprocessing(tmp_path: Path) -> None:
    """Which says that the handler's process itself is the script that was run again."""
    (tmp_path / "companion.py").write_text(textwrap.dedent(COMPANION))
    (path := tmp_path / "my_script.py").write_text(textwrap.dedent(ACCOMPANIED))
    ran = run(str(path), cwd=Path("/"))
    assert (ran.stdout, ran.stderr) == ("True __mp_main__\n", "")


def test_a_type_in_a_script_without_a_suffix(script: Path) -> None:
    ran = run(str(script.rename(script.with_suffix(""))), cwd=Path("/"))
    assert (ran.stdout, ran.stderr) == ("started\n42 36 __mp_main__\n", "")


def test_a_type_in_a_module_run_as_main(script: Path) -> None:
    ran = run("-m", "my_script", cwd=script.parent)
    assert (ran.stdout, ran.stderr) == ("started\n42 36 my_script\n", "")


def test_a_script_without_a_guard_is_not_started_again(tmp_path: Path) -> None:
    path = tmp_path / "my_script.py"
    path.write_text(textwrap.dedent(UNGUARDED))
    ran = run(str(path), cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (1, "started\n")
    assert 'must stand under `if __name__ == "__main__":`' in ran.stderr
    assert "JobFailed" in ran.stderr


def test_a_type_typed_in(tmp_path: Path) -> None:
    ran = run("-", cwd=tmp_path, typed=textwrap.dedent(UNGUARDED))
    assert "double is defined in an interactive session" in ran.stderr


async def test_a_module_that_cannot_be_imported_there(pool: ProcessPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROPEWALK_TEST_BREAK_IMPORT", "yes")
    outcome = await pool.run(Recording(broken_module.unreachable))
    assert isinstance(outcome, Aborted)
    error = outcome.error
    assert (error.category, error.code) == (Category.PERMANENT, "handler_not_found")
    assert "cannot import tests.runners.broken_module" in error.message
    assert "RuntimeError: no licence file" in error.message


async def test_a_module_made_at_run_time(pool: ProcessPool) -> None:
    module = ModuleType("made_up")
    exec("from ropewalk import job\n@job(executor='process')\ndef conjured() -> None: ...", vars(module))
    outcome = await pool.run(Recording(module.conjured))
    assert isinstance(outcome, Aborted)
    assert "No module named 'made_up' (it must be importable by that name" in outcome.error.message


def test_what_is_found_must_be_the_type() -> None:
    with pytest.raises(DefinitionError, match="not the job type 'add'"):
        load_job_type(Source(name="add", module="tests.runners.handlers", qualname="pid"))
    with pytest.raises(DefinitionError, match="not the job type 'os'"):
        load_job_type(Source(name="os", module="tests.runners.handlers", qualname="os"))
    with pytest.raises(DefinitionError, match="is None"):
        load_job_type(Source(name="gone", module="tests.runners.handlers", qualname="gone"))


def test_a_nested_type_has_no_name_to_find_it_by() -> None:
    @job
    async def nested() -> None: ...

    with pytest.raises(DefinitionError, match="is None"):
        load_job_type(source_of(nested))


STARTS_PROCESSES = """
    import asyncio
    import multiprocessing
    import sys

    from ropewalk import App, job

    @job(executor="process", max_attempts=1)
    def in_a_pool(number: int) -> list[int]:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            return pool.map(abs, [-number])

    async def main() -> None:
        app = App(f"sqlite:///{sys.argv[1]}/jobs.db", jobs=[in_a_pool])
        async with app.running():
            print(await app.enqueue(in_a_pool(3)).result(timeout=30))

    if __name__ == "__main__":
        asyncio.run(main())
"""


def test_a_handler_in_a_script_may_start_processes_of_its_own(tmp_path: Path) -> None:
    """They run the script once more, as processes that the script itself starts do."""
    (path := tmp_path / "my_script.py").write_text(textwrap.dedent(STARTS_PROCESSES))
    ran = run(str(path), str(tmp_path), cwd=tmp_path)
    assert ran.stdout == "[3]\n", ran.stderr
