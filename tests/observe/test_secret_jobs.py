"""A job that is built carries its arguments: whoever shows it shows nothing of what is secret in them."""

from __future__ import annotations

import base64
import io
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from ropewalk import Batch, Context, InvalidInput, JobInfo, Logs, Secret, batch_job, job
from ropewalk.domain.redaction import redacted
from ropewalk.domain.shown_errors import error_text
from ropewalk.domain.shown_values import shown
from ropewalk.logging import JsonFormatter, TextFormatter
from tests.apps import MakeApp

CARD, PASSWORD = "4111SECRET", "hunter2"
HIDDEN_TEXTS = (CARD, PASSWORD, "DE99", base64.b64encode(b'{"card":"4111SECRET"').decode()[:20])


@dataclass(frozen=True)
class Login:
    user: str
    password: str


@job
async def pay(card: Annotated[str, Secret], login: Login | None = None, iban: str = "", amount: int = 7) -> None: ...


@job
async def add(a: int, b: int) -> int:
    return a + b


@batch_job(size=10, max_attempts=1)
async def scan(batch: Batch[Annotated[str, Secret]]) -> list[str]:
    batch.contexts[0].log.info("%s", batch, extra={"batch": batch})
    raise ValueError("scan", batch)


@dataclass
class Order:
    card: Annotated[str, Secret]


@job
async def ship(order: Order, code: Annotated[int, Secret] = 0) -> None: ...


def hides(shown: object) -> bool:
    return not any(secret in str(shown) for secret in HIDDEN_TEXTS)


def a_payment() -> Any:
    return pay(CARD, Login("ada", PASSWORD), "DE99")


@job(max_attempts=1)
async def queues_a_list(ctx: Context) -> Any:
    made: Any = [pay(CARD)]
    return ctx.queue(made)


@job(max_attempts=1)
async def queues_a_value(ctx: Context) -> Any:
    made: Any = ctx.result(CARD)
    return ctx.queue(made)


@job(max_attempts=1)
async def folds_a_value(ctx: Context) -> Any:
    made: Any = CARD
    return ctx.result(made, append="sum")


@job(max_attempts=1)
async def raises() -> None:
    raise ValueError("x", pay(CARD, Login("ada", PASSWORD)))


class Declined(Exception):
    def __str__(self) -> str:
        return f"declined: {self.args[0].arguments['card']}"


@job(max_attempts=1)
async def raises_its_own() -> None:
    raise Declined(pay(CARD))


@job(max_attempts=1)
async def returns_it() -> Annotated[int, Secret]:
    made: Any = CARD
    return made  # type: ignore[no-any-return]


@job(max_attempts=1)
async def builds_what_does_not_fit() -> None:
    wrong: Any = {"card": [CARD]}
    ship(wrong)


FAILING = [
    builds_what_does_not_fit,
    queues_a_list,
    queues_a_value,
    folds_a_value,
    raises,
    raises_its_own,
    returns_it,
]


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    written = io.StringIO()
    logger = logging.getLogger("ropewalk")
    handlers = [logging.StreamHandler(written), logging.StreamHandler(written)]
    handlers[0].setFormatter(JsonFormatter())
    handlers[1].setFormatter(TextFormatter("%(message)s"))
    level, logger.level = logger.level, logging.INFO
    for handler in handlers:
        logger.addHandler(handler)
    yield written
    for handler in handlers:
        logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.mark.parametrize("kind", FAILING, ids=lambda kind: kind.name)
async def test_no_error_shows_what_a_job_carries(make_app: MakeApp, log: io.StringIO, kind: Any) -> None:
    app = make_app(*FAILING, pay, logs=Logs(secret_keys=("iban",)))
    async with app.running():
        handle = await app.enqueue(kind())
        info = await app.wait(handle.id, timeout=10)
    assert info.error is not None and hides(info.error)
    assert hides(log.getvalue())


@job
async def logs_it(ctx: Context) -> None:
    made = a_payment()
    ctx.log.info("made %s %r", made, [made], extra={"job": made, "jobs": [made], "plain": add(1, b=2)})


async def test_no_log_line_shows_what_a_job_carries(make_app: MakeApp, log: io.StringIO) -> None:
    app = make_app(logs_it, pay, logs=Logs(secret_keys=("iban",)))
    async with app.running():
        handle = await app.enqueue(logs_it())
        await handle.result(timeout=10)
    [line] = await app.logs(handle.id)
    shown = "Job(pay card=[hidden] login={'user': 'ada', 'password': '[hidden]'} iban=[hidden] amount=7)"
    assert line.message.startswith(f"made {shown} [")
    assert line.fields == {"job": shown, "jobs": [shown], "plain": "Job(add a=1 b=2)"}
    assert hides(line) and hides(log.getvalue())


def test_what_a_job_shows_of_itself() -> None:
    assert repr(pay(CARD, Login("ada", PASSWORD))) == (
        "Job(pay card=[hidden] login={'user': 'ada', 'password': '[hidden]'} iban='' amount=7)"
    )
    assert repr(add(1, b=2)) == "Job(add a=1 b=2)"
    assert repr(scan(CARD)) == "Job(scan item=[hidden])"


@pytest.mark.parametrize("value", [pay(CARD), [pay(CARD)], {"job": pay(CARD)}, Login("ada", PASSWORD)])
def test_messages_about_values_hide_what_is_secret(value: object) -> None:
    assert hides(shown(value))


@pytest.mark.parametrize(
    "arguments", [{"order": {"card": 4111}}, [CARD], {"order": {"card": "a"}, "code": CARD}], ids=repr
)
def test_messages_about_arguments_hide_what_is_marked(arguments: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        ship.from_arguments(arguments)
    assert hides(refused.value) and "4111" not in str(refused.value)


async def test_a_batch_hides_its_items(make_app: MakeApp, log: io.StringIO) -> None:
    app = make_app(scan)
    async with app.running():
        handle = await app.enqueue(scan(CARD))
        info = await app.wait(handle.id, timeout=10)
    [line] = await app.logs(handle.id)
    assert line.message == "Batch(1 items)"
    assert info.error is not None and hides(info.error) and hides(line) and hides(log.getvalue())


@job(max_attempts=1)
async def make_up_for_pay(ctx: Context, card: str) -> None:
    ctx.log.info("%s", ctx.compensates, extra={"of": ctx.compensates})


@job(max_attempts=1, on_failure=make_up_for_pay)
async def pay_or_fail(card: Annotated[str, Secret]) -> None:
    raise ValueError("no")


async def test_a_compensation_hides_the_arguments_of_its_job(make_app: MakeApp, log: io.StringIO) -> None:
    app = make_app(pay_or_fail, make_up_for_pay)
    async with app.running():
        handle = await app.enqueue(pay_or_fail(CARD))
        await handle.group(timeout=10)
    [line] = [line for each in (await app.search()).jobs for line in await app.logs(each.id)]
    assert "Compensated" in line.message and hides(line) and hides(log.getvalue())


async def test_a_job_as_people_see_it_hides_its_arguments_in_log_fields(make_app: MakeApp) -> None:
    app = make_app(pay, logs=Logs(secret_keys=("iban",)))
    handle = await app.enqueue(pay(CARD, Login("ada", PASSWORD), "DE99"))
    schedule = await app.create_schedule("s", every=60, job=pay(CARD, Login("ada", PASSWORD), "DE99"))
    info = await app.get(handle.id)
    record = logging.makeLogRecord({"msg": "%s %s", "args": (info, schedule), "info": info, "schedule": schedule})
    told: Mapping[str, Any] = json.loads(JsonFormatter().format(record))
    assert hides(told)
    assert told["info"]["arguments"]["card"] == "[hidden]"
    assert told["info"]["arguments"]["amount"] == 7
    assert isinstance(info, JobInfo) and info.arguments["card"] == CARD, "the value itself stays as it is"
    assert redacted(info)["id"] == handle.id


def test_an_error_about_a_job_with_nothing_to_hide_keeps_its_message() -> None:
    class Late(Exception):
        def __str__(self) -> str:
            return f"late: {self.args[0].id}"

    made = add(1, b=2)
    assert error_text(Late(made)) == f"late: {made.id}"
    assert redacted({"error": Late(made)})["error"].args == (made,)
