"""The testing kit as its users meet it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ropewalk import App, Backoff, Context, JobFailed, State, job
from ropewalk.testing import FakeRuntime, Rehearsal

pytest_plugins = ["pytester"]

sent: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    sent.clear()


@job
async def send(to: str, text: str = "hi") -> str:
    sent.append(to)
    return f"{text} {to}"


@job(max_attempts=3, backoff=Backoff.constant(60))
async def flaky(ctx: Context) -> int:
    if ctx.attempt < 3:
        raise ValueError("not yet")
    return ctx.attempt


@job
async def campaign(ctx: Context, people: list[str]) -> None:
    for person in people:
        await ctx.spawn(send(to=person))


app = App("memory://", jobs=[send, flaky, campaign])


async def test_run_returns_the_typed_result(rehearse: Callable[[App], Rehearsal]) -> None:
    rehearsal = rehearse(app)
    assert await rehearsal.run(send(to="ann")) == "hi ann"
    assert sent == ["ann"]


async def test_nothing_runs_until_drained_and_time_is_ours(
    rehearse: Callable[[App], Rehearsal], ropewalk_clock: FakeRuntime
) -> None:
    rehearsal = rehearse(app)
    handle = await rehearsal.enqueue(send(to="bob"), delay=3600)
    assert await rehearsal.drain() == 0
    await rehearsal.advance(minutes=59, seconds=59)
    assert await rehearsal.drain() == 0
    await ropewalk_clock.advance(seconds=1)
    assert await rehearsal.drain() == 1
    assert await handle.result() == "hi bob"


async def test_retries_follow_the_fake_clock(rehearse: Callable[[App], Rehearsal]) -> None:
    rehearsal = rehearse(app)
    handle = await rehearsal.enqueue(flaky())
    for expected in (State.RETRYING, State.RETRYING, State.COMPLETED):
        await rehearsal.drain()
        assert (await handle.status()).state is expected
        await rehearsal.advance(seconds=60)


async def test_assertions_say_what_is_there(rehearse: Callable[[App], Rehearsal]) -> None:
    rehearsal = rehearse(app)
    await rehearsal.run(campaign(people=["ann", "bob"]))
    info = await rehearsal.assert_enqueued(send, to="ann")
    assert info.state is State.COMPLETED
    await rehearsal.assert_not_enqueued(send, to="carl")
    with pytest.raises(AssertionError, match=r"no send\(to='carl'\)[\s\S]*send\(to='bob', text='hi'\)"):
        await rehearsal.assert_enqueued(send, to="carl")
    with pytest.raises(AssertionError, match="was enqueued"):
        await rehearsal.assert_not_enqueued(send, to="bob")


async def test_assertions_see_every_job_however_many(rehearse: Callable[[App], Rehearsal]) -> None:
    rehearsal = rehearse(app)
    await rehearsal.enqueue_many([send(to=f"person {number}") for number in range(1100)])
    last = await rehearsal.enqueue(send(to="zoe"))
    assert (await rehearsal.assert_enqueued(send, to="zoe")).id == last.id
    assert [info.arguments for info in await rehearsal.enqueued(send)][1098:] == [
        {"to": "person 1098", "text": "hi"},
        {"to": "person 1099", "text": "hi"},
        {"to": "zoe", "text": "hi"},
    ]
    with pytest.raises(AssertionError, match="was enqueued"):
        await rehearsal.assert_not_enqueued(send, to="zoe")
    with pytest.raises(AssertionError, match=r"1,101, of which these are the newest:\n.*person 1001'"):
        await rehearsal.assert_enqueued(send, to="nobody")


async def test_assertions_see_the_jobs_of_every_tenant(rehearse: Callable[[App], Rehearsal]) -> None:
    rehearsal = rehearse(app)
    acme, bravo = rehearsal.tenant("acme"), rehearsal.tenant("bravo")
    await rehearsal.enqueue(send(to="ann"))
    assert await acme.run(send(to="bob")) == "hi bob"
    assert (await rehearsal.assert_enqueued(send, to="bob")).tenant == "acme"
    assert (await acme.assert_enqueued(send, to="bob")).state is State.COMPLETED
    with pytest.raises(AssertionError, match=r"was enqueued .*tenant 'acme'"):
        await rehearsal.assert_not_enqueued(send, to="bob")
    await bravo.assert_not_enqueued(send)
    await acme.assert_not_enqueued(send, to="ann")
    assert [len(await each.enqueued()) for each in (rehearsal, acme, bravo)] == [2, 1, 0]


async def test_inline_mode_runs_at_once() -> None:
    rehearsal = Rehearsal(app, inline=True)
    await rehearsal.enqueue(campaign(people=["ann"]))
    assert sent == ["ann"]


@job
def blocking_parent(ctx: Context) -> str:
    return ctx.sync.spawn(send(to="kim"))


async def test_blocking_handlers_may_use_ctx_sync() -> None:
    rehearsal = Rehearsal(App(jobs=[blocking_parent, send]))
    child = await rehearsal.run(blocking_parent())
    assert (await rehearsal.get(child)).state is State.COMPLETED
    assert sent == ["kim"]


async def test_a_job_that_has_not_ended_says_what_to_do(rehearse: Callable[[App], Rehearsal]) -> None:
    with pytest.raises(AssertionError, match=r"flaky has not ended: attempt 1 failed \(not yet\).*advance the clock"):
        await rehearse(app).run(flaky())


async def test_failures_surface(rehearse: Callable[[App], Rehearsal]) -> None:
    with pytest.raises(JobFailed, match="not yet"):
        await rehearse(app).run(flaky().using(max_attempts=1))


def test_the_plugin_fails_a_test_that_drops_an_enqueue(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from ropewalk import App, job

        @job
        async def nothing() -> None: ...

        app = App(jobs=[nothing])

        def test_forgets_to_await():
            app.enqueue(nothing())

        def test_is_fine():
            app.sync.enqueue(nothing())
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:randomly")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*enqueue(nothing) at *.py:9 was never awaited*"])
