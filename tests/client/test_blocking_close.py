"""`app.sync.close()` and `with app.sync`: what they end, and what happens to whoever goes on."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ropewalk import App, Event, RopewalkError, StoreUnavailable, job
from ropewalk.sync import SyncApp
from tests.apps import MakeApp

Threads = Callable[[], list[threading.Thread]]


@job
async def plus_one(number: int) -> int:
    return number + 1


@pytest.fixture
def app(new_app: MakeApp) -> Iterator[App]:
    app = new_app(plus_one)
    yield app
    app.sync.close()


@pytest.fixture(autouse=True)
def threads() -> Threads:
    """The threads of ropewalk that were started in this test."""
    before = set(threading.enumerate())
    return lambda: [each for each in threading.enumerate() if each not in before and each.name.startswith("ropewalk")]


def in_thread(call: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """A thread that makes this call, and what came of it."""
    answers: list[object] = []

    def work() -> None:
        try:
            answers.append(call())
        except Exception as error:
            answers.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    return thread, answers


def test_a_block_opens_the_store_and_closes_it(app: App, threads: Threads) -> None:
    with app.sync as client:
        assert client is app.sync
        assert app._app_state.is_open
        assert client.count() == 0
        client.enqueue(plus_one(1))
    assert not app._app_state.is_open
    assert threads() == []


def test_closing_twice_does_nothing_and_starts_nothing(app: App, threads: Threads) -> None:
    app.sync.close()
    assert threads() == []
    app.sync.enqueue(plus_one(1))
    app.sync.close()
    app.sync.close()
    assert threads() == [] and not app._app_state.is_open


def test_a_use_after_it_opens_the_app_again(app: App, url: str) -> None:
    """As `await app.close()` does."""
    handle = app.sync.enqueue(plus_one(1))
    app.sync.close()
    assert app.sync.get(handle.id).id == handle.id
    with app.sync as client:
        assert client.tenant("acme").count() == 0
        handle.cancel()
        assert client.count() == 1
    asyncio.run(app.close())
    assert handle.status().terminal


def test_what_the_async_app_has_opened_is_closed_too(app: App, threads: Threads) -> None:
    async def use() -> None:
        await app.enqueue(plus_one(1))

    asyncio.run(use())
    assert app._app_state.is_open
    app.sync.close()
    assert not app._app_state.is_open and threads() == []


def test_an_error_of_the_block_passes(app: App) -> None:
    with pytest.raises(ZeroDivisionError), app.sync:
        1 / 0  # noqa: B018 # what is tested
    assert not app._app_state.is_open


def test_a_store_that_does_not_open_leaves_no_thread(tmp_path: Path, threads: Threads) -> None:
    app = App(f"sqlite:///{tmp_path}/not/there/jobs.db", jobs=[plus_one])
    with pytest.raises(RopewalkError), app.sync:
        raise AssertionError("the block is not entered")
    assert threads() == []


def test_a_close_that_fails_ends_the_thread_all_the_same(
    app: App, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails() -> None:
        raise StoreUnavailable("away")

    app.sync.count()
    with monkeypatch.context() as patch:
        patch.setattr(app._app_state.store, "close", fails)
        with pytest.raises(StoreUnavailable):
            app.sync.close()
    assert not [each for each in threads() if each.name == "ropewalk-sync"]
    asyncio.run(app.close())


def test_it_ends_calls_and_iterations_that_wait(app: App, threads: Threads) -> None:
    handle = app.sync.enqueue(plus_one(1))
    events = app.sync.events()
    waiting = [in_thread(handle.result), in_thread(lambda: list(events)), in_thread(lambda: app.sync.wait(handle.id))]
    while len(app.sync.portal._waits) < len(waiting):
        assert app.sync.count() == 1
    app.sync.close()
    for thread, _ in waiting:
        thread.join(10)
        assert not thread.is_alive()
    (_, [result]), (_, [heard]), (_, [ended]) = waiting
    for error in (result, ended):
        assert isinstance(error, RopewalkError) and "app.sync was closed while this waited" in str(error)
    assert heard == []
    assert threads() == []


def test_threads_that_go_on_meanwhile_are_answered(app: App) -> None:
    """A call under way is done before, and the next one opens the app again."""
    stop = threading.Event()

    def enqueues() -> int:
        done = 0
        while not stop.is_set():
            app.sync.enqueue(plus_one(done))
            done += 1
        return done

    working = [in_thread(enqueues) for _ in range(4)]
    for _ in range(20):
        app.sync.count()
        app.sync.close()
    stop.set()
    for thread, _ in working:
        thread.join(20)
        assert not thread.is_alive()
    done = [answers[0] for _, answers in working]
    assert all(isinstance(each, int) for each in done), done
    assert app.sync.count() == sum(each for each in done if isinstance(each, int))


async def test_it_is_refused_beneath_a_worker_of_this_loop(app: App) -> None:
    async with app.running():
        with pytest.raises(RuntimeError, match="this would close the store of the worker that runs on this loop"):
            app.sync.close()
        assert await app.enqueue(plus_one(1)).result(timeout=5) == 2


def test_a_hook_on_its_own_loop_is_told_so(new_app: MakeApp) -> None:
    """It would wait for itself."""
    heard: list[BaseException] = []
    made: list[App] = []

    def hook(event: Event) -> None:
        sync = made[0].sync
        calls: list[Callable[[], Any]] = [lambda: sync.get(event.job_id), sync.close, sync.events]
        for call in calls:
            try:
                call()
            except RuntimeError as error:
                heard.append(error)

    made.append(new_app(plus_one, on_event=hook))
    with made[0].sync as client:
        client.enqueue(plus_one(1))
    assert ["would wait for" in str(each) for each in heard] == [True] * 3


def test_a_client_of_one_tenant_closes_nothing(app: App) -> None:
    acme = app.sync.tenant("acme")
    assert isinstance(app.sync, SyncApp) and not isinstance(acme, SyncApp)
    with pytest.raises(AttributeError, match="close"):
        acme.close()  # type: ignore[attr-defined]


SCRIPT = """
import os, threading
from ropewalk import App, job

@job
async def nothing() -> None: ...

app = App("sqlite:///jobs.db", jobs=[nothing])

"""
SCRIPTS = {
    "exit without close": """
with app.sync as client:
    client.enqueue(nothing())
app.sync.enqueue(nothing())
threading.Thread(target=app.sync.enqueue(nothing()).result, daemon=True).start()
print(app.sync.count())
""",
    "exit inside of the block": """
with app.sync as client:
    client.enqueue_many(nothing() for _ in range(3))
    print(client.count())
    raise SystemExit
""",
    "fork inside of the block": """
with app.sync as client:
    client.enqueue(nothing())
    pid = os.fork()
    if pid == 0:
        client.enqueue(nothing())
        client.close()
        client.close()
        client.enqueue(nothing())
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    print(client.count())
assert not [each for each in threading.enumerate() if each.name.startswith("ropewalk")]
""",
    "fork while another thread closes": """
with app.sync as client:
    client.enqueue_many(nothing() for _ in range(3))
    held, released, stop = threading.Event(), threading.Event(), app.sync.portal._stop

    def stop_later(loop):
        held.set()
        released.wait()
        stop(loop)

    app.sync.portal._stop = stop_later
    thread = threading.Thread(target=client.close)
    thread.start()
    held.wait()
    pid = os.fork()
    if pid == 0:
        assert client.count() == 3
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    released.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0
    print(client.count())
""",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_exits_and_forks(tmp_path: Path, name: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT + textwrap.dedent(SCRIPTS[name]))
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", ""), done.stderr
