"""Secrets inside of arguments reach the handler, and nobody who looks on."""

from __future__ import annotations

import io
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, TypedDict

import msgspec
import pytest

from ropewalk import Context, Event, JobFailed, Logs, Secret, job
from ropewalk.cli import job_view, render, schedule_view
from ropewalk.logging import JsonFormatter, TextFormatter
from tests.apps import MakeApp

SECRETS = ("hunter2", "4111", "123456", "DE99")
seen: list[object] = []


@dataclass(frozen=True)
class User:
    name: str
    password: str


class Payment(msgspec.Struct):
    card: Annotated[str, Secret]
    user: User


class Login(TypedDict):
    name: str
    second: Annotated[str, Secret] | None


def context_of(arguments: Mapping[str, object]) -> dict[str, object]:
    payment = arguments["payment"]
    assert isinstance(payment, Payment)
    return {"who": payment.user, "card": payment.card, "login": arguments["login"]}


class Declined(Exception):
    pass


@job(log_context=context_of, max_attempts=1)
async def pay(ctx: Context, payment: Payment, login: Login, iban: str, fail: bool = False) -> Payment:
    seen.append((payment, login, iban))
    ctx.log.info(
        "paying %s for %r", payment, payment.user, extra={"user": payment.user, "all": [payment], "iban": iban}
    )
    ctx.log.warning("%(who)s", {"who": payment.user})
    try:
        raise Declined("card", payment)
    except Declined as error:
        ctx.log.exception("declined", extra={"error": error})
        if fail:
            raise
    return payment


@job(executor="process", max_attempts=1)
def pay_afar(ctx: Context, payment: Payment) -> Annotated[str, Secret]:
    ctx.log.info("%s", payment, extra={"payment": payment})
    if payment.user.name == "eve":
        raise Declined(payment)
    return payment.card


PAYMENT = Payment("4111", User("ada", "hunter2"))
LOGIN: Login = {"name": "ada", "second": "123456"}


def hides_all(shown: str) -> bool:
    return not any(secret in shown for secret in SECRETS) and "[hidden]" in shown and "ada" in shown


@pytest.fixture
def log() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def _logged(log: io.StringIO) -> object:
    logger = logging.getLogger("ropewalk")
    handlers = [logging.StreamHandler(log), logging.StreamHandler(log)]
    handlers[0].setFormatter(JsonFormatter(secret_keys=("iban",)))
    handlers[1].setFormatter(TextFormatter("%(message)s"))
    level, logger.level = logger.level, logging.INFO
    for handler in handlers:
        logger.addHandler(handler)
    yield
    for handler in handlers:
        logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.mark.usefixtures("_logged")
@pytest.mark.parametrize("fail", [False, True])
async def test_no_log_line_no_error_and_no_view_shows_a_secret(
    make_app: MakeApp, log: io.StringIO, capsys: pytest.CaptureFixture[str], *, fail: bool
) -> None:
    seen.clear()
    events: list[Event] = []
    app = make_app(pay, logs=Logs(secret_keys=("iban",)), on_event=events.append)
    async with app.running():
        handle = await app.enqueue(pay(PAYMENT, LOGIN, "DE99", fail=fail))
        await app.wait(handle.id, timeout=10)
        info, lines = await app.get(handle.id), await app.logs(handle.id)
        history, failure = await app.history(handle.id), await app.failure(handle.id, all_attempts=True)
    assert seen == [(PAYMENT, LOGIN, "DE99")], "the handler gets what was enqueued"
    assert info.arguments == {"payment": PAYMENT, "login": LOGIN, "iban": "DE99", "fail": fail}
    assert hides_all(log.getvalue())
    assert len(lines) == 3 and all(hides_all(f"{line.message} {line.fields}") for line in lines)
    assert lines[0].fields["context"] == {
        "who": {"name": "ada", "password": "[hidden]"},
        "card": "[hidden]",
        "login": {"name": "ada", "second": "[hidden]"},
    }
    job_view.echo_job(info)
    job_view.echo_history(history)
    job_view.echo_logs(lines)
    assert hides_all(capsys.readouterr().out)
    assert hides_all(render.to_json(job_view.presentable(info)))
    if fail:
        with pytest.raises(JobFailed) as caught:
            await handle.result()
        assert all(hides_all(each) for each in (str(caught.value), str(failure), str(events[-1]), str(info.error)))


async def test_nor_does_a_process_of_its_own(make_app: MakeApp, capsys: pytest.CaptureFixture[str]) -> None:
    app = make_app(pay_afar)
    async with app.running():
        fine = await app.enqueue(pay_afar(PAYMENT))
        assert await fine.result(timeout=60) == "4111"
        failing = await app.enqueue(pay_afar(Payment("4111", User("eve of ada", "hunter2"))))
        await app.wait(failing.id, timeout=60)
        for handle in (fine, failing):
            [line] = await app.logs(handle.id)
            assert hides_all(f"{line.message} {line.fields}")
        job_view.echo_job(await app.get(fine.id))
    assert hides_all(capsys.readouterr().out), "its result is marked, too"


async def test_schedules_hide_the_secrets_of_their_jobs(make_app: MakeApp, capsys: pytest.CaptureFixture[str]) -> None:
    app = make_app(pay, logs=Logs(secret_keys=("iban",)))
    await app.create_schedule("nightly", every=3600, job=pay(PAYMENT, LOGIN, "DE99"))
    [info] = await app.schedules()
    schedule_view.echo_schedule(info)
    assert hides_all(capsys.readouterr().out)
    assert hides_all(render.to_json(schedule_view.presentable(info)))
