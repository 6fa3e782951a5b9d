"""One app from several loops, threads and processes; the blocking face."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from ropewalk import State, job
from tests.apps import MakeApp


@job
async def plus_one(number: int) -> int:
    return number + 1


def test_asyncio_run_twice(new_app: MakeApp) -> None:
    app = new_app(plus_one)

    async def once() -> int:
        async with app.running():
            return await app.enqueue(plus_one(number=1)).result(timeout=5)

    assert asyncio.run(once()) == 2
    assert asyncio.run(once()) == 2


def test_the_blocking_face_shares_the_store(new_app: MakeApp) -> None:
    app = new_app(plus_one)
    handle = app.sync.enqueue(plus_one(number=1))
    assert app.sync.get(handle.id).state is State.SCHEDULED
    ready, stop = threading.Event(), threading.Event()

    async def serve() -> None:
        async with app.worker():
            ready.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(5)
        assert handle.result(timeout=5) == 2
        many = app.sync.enqueue_many(plus_one(number=n) for n in range(10))
        assert [each.result(timeout=5) for each in many] == list(range(1, 11))
        assert [entry.kind for entry in app.sync.history(handle.id)] == ["queued", "started", "complete"]
        assert app.sync.tenant("acme").count() == 0
    finally:
        stop.set()
        thread.join()
        asyncio.run(app.close())


async def test_blocking_on_the_workers_own_loop_is_refused(make_app: MakeApp) -> None:
    app = make_app(plus_one)
    async with app.running():
        handle = app.sync.enqueue(plus_one(number=1))
        with pytest.raises(RuntimeError, match="could never end"):
            handle.result(timeout=1)
        assert await app.handle(handle.id, plus_one).result(timeout=5) == 2


def test_many_threads_enqueue(new_app: MakeApp) -> None:
    app = new_app(plus_one)

    def some() -> None:
        for number in range(20):
            app.sync.enqueue(plus_one(number=number))

    threads = [threading.Thread(target=some) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert app.sync.count() == 100
    asyncio.run(app.close())


def test_exit_never_hangs(tmp_path: Path) -> None:
    """An app that was used and never closed, with a thread handler still stuck, ends with the interpreter."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import asyncio, time
            from ropewalk import App, job

            @job
            def stuck() -> None:
                time.sleep(60)

            app = App("sqlite:///jobs.db", jobs=[stuck])

            async def main():
                async with app, app.worker(grace=0.1):
                    await app.enqueue(stuck())
                    await asyncio.sleep(0.3)

            app.sync.enqueue(stuck())
            asyncio.run(main())
            print("done")
            """
        )
    )
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_a_forked_child_opens_its_own_connection(tmp_path: Path) -> None:
    script = tmp_path / "forks.py"
    script.write_text(
        textwrap.dedent(
            """
            import os
            from ropewalk import App, job

            @job
            async def nothing() -> None: ...

            app = App("sqlite:///jobs.db", jobs=[nothing])
            app.sync.enqueue(nothing())
            pid = os.fork()
            if pid == 0:
                app.sync.enqueue(nothing())
                os._exit(0)
            _, status = os.waitpid(pid, 0)
            app.sync.enqueue(nothing())
            print(os.waitstatus_to_exitcode(status), app.sync.count())
            """
        )
    )
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env=environment,
    )
    assert done.stdout == "0 3\n", done.stderr
