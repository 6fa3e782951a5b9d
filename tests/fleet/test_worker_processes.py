"""`app.worker(processes=)`, as a user's program calls it: real processes on a real file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from ropewalk import App, DefinitionError, InvalidInput, State, job
from tests.cli.conftest import environment, lingering, members, until
from tests.fleet import errand

HERE = Path(__file__).parent
START = "import asyncio\nfrom errand import app, workers\n"

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture(params=["sqlite", "postgres"])
def url(place: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{place}/jobs.db"
    else:
        schema = f"fleet_{os.urandom(4).hex()}"
        yield f"{request.getfixturevalue('newest_postgres').dsn()}?schema={schema}"


with_one_store = pytest.mark.parametrize("url", ["sqlite"], indirect=True)
"""For what is refused whatever the store is."""


@pytest.fixture
def app(url: str) -> Iterator[App]:
    """The same store, from here."""
    app = App(url, jobs=errand.TYPES, allow_weaker_durability=True)
    yield app
    app.sync.close()


@pytest.fixture
def start(url: str) -> Iterator[Start]:
    """A program of a user beside errand.py: its text, or the path of a script. What is left of it is killed."""
    started: list[subprocess.Popen[str]] = []

    def program(text: str = "", *, script: Path | None = None, **env: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, *(["-c", START + dedent(text)] if script is None else [str(script)])],
            env=environment(**({"ROPEWALK_URL": url} | env)),
            cwd=HERE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield program
    for process in started:
        for pid in [*members(process), process.pid] if process.poll() is None else []:
            os.kill(pid, signal.SIGKILL)
        process.communicate()


def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    return process.communicate(timeout=30)


def all_up(app: App, count: int) -> None:
    until(lambda: len(app.sync.workers()) == count, f"{count} workers are there")


def gone(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


RUN = "print(asyncio.run(app.worker(processes=2, lease=1, grace=1).run()))"


def test_they_serve_and_a_signal_drains_them(start: Start, app: App) -> None:
    process = start(RUN)
    all_up(app, 2)
    pids = members(process)
    assert {card.pid for card in app.sync.workers()} == set(pids)
    assert {card.concurrency for card in app.sync.workers()} == {10}
    assert app.sync.enqueue(errand.who()).result(20) in pids
    process.terminate()
    out, err = ended(process)
    assert (process.returncode, out, err) == (0, "True\n", "")
    assert gone(pids)


def test_they_have_what_no_data_can_say(start: Start, app: App) -> None:
    """A policy and a function: each process finds the workers by their name."""
    process = start("asyncio.run(workers.run())")
    all_up(app, 2)
    assert {card.concurrency for card in app.sync.workers()} == {3}
    process.terminate()
    assert ended(process) == ("", "")


def test_inside_a_program(start: Start) -> None:
    process = start(
        """
        import os
        from errand import who

        async def main():
            async with app, app.worker(processes=2, types=[who]) as several:
                ran_in = await app.enqueue(who()).result(20)
                cards = await app.workers()
                print(ran_in in {card.pid for card in cards}, ran_in != os.getpid())
                print({card.id for card in cards} == set(several.ids), several.types, several.processes)
            print(await several.stop(), await several.stop(), several.ids)

        asyncio.run(main())
        """
    )
    out, err = ended(process)
    assert (process.returncode, err) == (0, "")
    assert out.splitlines() == ["True True", "True ('who',) 2", "True True ()"]


def test_one_that_is_killed_is_replaced_and_its_job_recovered(start: Start, app: App, place: Path) -> None:
    process = start(RUN)
    all_up(app, 2)
    job_id = lingering(app, "linger", place)
    victim = int((place / "lingering").read_text())
    (place / "lingering").unlink()
    os.kill(victim, signal.SIGKILL)
    until(lambda: len(members(process)) == 2 and victim not in members(process), "there are two again")
    until((place / "lingering").exists, "the job runs again")
    (place / "go").touch()
    until(lambda: app.sync.get(job_id).terminal, "it ends")
    assert (app.sync.get(job_id).result, app.sync.get(job_id).attempt) == ("gone", 2)
    process.terminate()
    _, err = ended(process)
    assert process.returncode == 0
    assert f"(pid {victim}) was killed by SIGKILL (out of memory?): another starts in 1 s" in err


def test_after_the_grace_period_no_attempt_is_lost(start: Start, app: App, place: Path) -> None:
    process = start(RUN)
    all_up(app, 2)
    job_id = lingering(app, "linger", place)
    process.terminate()
    assert ended(process) == ("True\n", "")
    assert (app.sync.get(job_id).state, app.sync.get(job_id).attempt) == (State.SCHEDULED, 0)


def test_a_second_signal_does_not_wait(start: Start, app: App, place: Path) -> None:
    process = start("print(asyncio.run(app.worker(processes=2, grace=60).run()))")
    all_up(app, 2)
    job_id = lingering(app, "linger", place)
    process.terminate()
    until(lambda: len(members(process)) < 2, "the idle one has drained")
    process.send_signal(signal.SIGINT)
    assert ended(process)[0] == "True\n"
    assert (app.sync.get(job_id).state, app.sync.get(job_id).attempt) == (State.SCHEDULED, 0)


def test_a_handler_that_does_not_end_is_told(start: Start, app: App, place: Path) -> None:
    process = start("print(asyncio.run(app.worker(processes=2, grace=0).run()))")
    all_up(app, 2)
    lingering(app, "deaf", place)
    process.terminate()
    out, err = ended(process)
    assert out == "False\n"
    assert "a handler did not end when it was told to: the process ends without it" in err


def test_a_cancelled_run_drains(start: Start, app: App, place: Path) -> None:
    process = start(
        """
        async def main():
            running = asyncio.ensure_future(app.worker(processes=2, grace=0.5).run())
            await asyncio.to_thread(input)
            running.cancel()
            await asyncio.wait([running])
            print(running.cancelled())

        asyncio.run(main())
        """.replace("input)", "__import__('sys').stdin.readline)"),
    )
    all_up(app, 2)
    pids = members(process)
    assert ended(process)[0] == "True\n"
    assert gone(pids)


def test_without_the_program_that_started_them_they_drain(start: Start, app: App, place: Path) -> None:
    process = start(RUN)
    all_up(app, 2)
    job_id = lingering(app, "linger", place)
    pids = members(process)
    process.kill()
    process.wait(timeout=20)
    try:
        until(lambda: gone(pids), "the workers end")
    finally:
        for pid in pids:
            if not gone([pid]):
                os.kill(pid, signal.SIGKILL)
    assert (app.sync.get(job_id).state, app.sync.get(job_id).attempt) == (State.SCHEDULED, 0)


SCRIPT = """\
import asyncio
import logging
import os
from ropewalk import App, job

@job
async def who() -> int:
    return os.getpid()

@job(executor="process")
def where() -> int:
    return os.getppid()

logging.getLogger("ropewalk.postgres").setLevel("ERROR")
app = App(jobs=[who, where], allow_weaker_durability=True)

async def main() -> None:
    async with app, app.worker(processes=2) as workers:
        pids = {card.pid for card in await app.workers()}
        print(await app.enqueue(who()).result(20) in pids, await app.enqueue(where()).result(20) in pids)

"""


def test_an_app_in_a_script(start: Start, place: Path) -> None:
    """Its handlers in processes of their own are found again, too."""
    script = place / "script.py"
    script.write_text(SCRIPT + 'if __name__ == "__main__":\n    asyncio.run(main())\n')
    process = start(script=script)
    out, err = ended(process)
    assert (process.returncode, out, err) == (0, "True True\n", "")


@with_one_store
def test_a_script_without_a_guard_is_refused(start: Start, place: Path) -> None:
    script = place / "script.py"
    script.write_text(SCRIPT + "asyncio.run(main())\n")
    process = start(script=script)
    out, err = ended(process)
    assert (process.returncode, out) == (1, "")
    assert "DefinitionError: a worker in a process of its own cannot start: " in err
    assert 'everything a script does must stand under `if __name__ == "__main__":`' in err


IN_A_FUNCTION = """
from ropewalk import App
from errand import TYPES

def make():
    return App("sqlite:///jobs.db", jobs=TYPES)

asyncio.run(make().worker(processes=2).run())
"""
NO_DATA = """
from ropewalk.policies import Balanced

asyncio.run(app.worker(processes=2, concurrency=Balanced(3), accept=bool).run())
"""
LATE = """
from ropewalk import job

@job
async def late() -> None: ...

app.registry.add(late)
asyncio.run(app.worker(processes=2).run())
"""
ANOTHER_STORE = """
import os

os.environ["ROPEWALK_URL"] += "2"
asyncio.run(app.worker(processes=2).run())
"""
BROKEN = """
import os

os.environ["BREAK"] = "1"
asyncio.run(workers.run())
"""


@with_one_store
@pytest.mark.parametrize(
    ("text", "told"),
    [
        (IN_A_FUNCTION, "DefinitionError: processes=2: other processes find the app by its name, and no module has"),
        (NO_DATA, "DefinitionError: processes=2: concurrency=, accept= cannot be sent to other processes; make the"),
        (LATE, "DefinitionError: a worker in a process of its own cannot start: no job type named 'late' is reg"),
        (ANOTHER_STORE, "give the app one URL that is the same in every process"),
        (BROKEN, "cannot import errand, where workers is defined: ZeroDivisionError: division by zero"),
    ],
)
def test_what_cannot_work_is_refused(text: str, told: str, start: Start) -> None:
    process = start(text)
    out, err = ended(process)
    assert (process.returncode, out) == (1, "")
    assert told in err


@job
async def nothing() -> None: ...


async def test_a_store_inside_one_process_is_refused() -> None:
    """When they are started: a module that makes them can be imported anywhere."""
    workers = App("memory://", jobs=[nothing]).worker(processes=2)
    with pytest.raises(DefinitionError, match="processes=2: memory:// lives inside one process"):
        await workers.run()
    with pytest.raises(DefinitionError, match="use a store that several share"):
        async with workers:
            raise AssertionError("they do not start")


@with_one_store
@pytest.mark.parametrize("processes", [0, -1, 257, "2", True, 1.5])
def test_a_number_that_makes_no_sense_is_refused(processes: int, url: str) -> None:
    with pytest.raises(InvalidInput, match="processes"):
        App(url, jobs=[nothing]).worker(processes=processes)


async def test_what_is_not_running_cannot_be_stopped(url: str) -> None:
    with pytest.raises(RuntimeError, match="these workers are not running"):
        await App(url, jobs=[nothing]).worker(processes=2).stop()
