"""What is shown in place of a secret is refused where its value is to be given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pytest

from ropewalk import InvalidInput, Logs, Secret, batch_job, job
from tests.apps import MakeApp


@dataclass
class Login:
    user: str
    password: str


class Account(msgspec.Struct, rename="camel"):
    owner: str
    card_number: Annotated[str, Secret] = ""


@job(max_attempts=1)
async def pay(  # noqa: PLR0917 # one argument of each kind
    card: Annotated[str, Secret],
    login: Login,
    account: Account | None = None,
    iban: str = "",
    pins: Annotated[list[str] | None, Secret] = None,
    note: str = "",
) -> None:
    raise ValueError("declined")


@batch_job(max_attempts=1)
async def scan(items: list[Annotated[str, Secret]]) -> list[str]:
    raise ValueError("broken")


GIVEN = {"card": "4222", "login": {"user": "ada", "password": "new"}}
HIDDEN = "[hidden]"
WRONG = [
    ({**GIVEN, "card": HIDDEN}, r"pay: argument 'card' holds '\[hidden\]', .*: give the value itself$"),
    ({**GIVEN, "login": {"user": "ada", "password": HIDDEN}}, "pay: argument 'login' holds .* at login.password, "),
    ({**GIVEN, "login": Login("ada", HIDDEN)}, "pay: argument 'login' holds .* at login.password, "),
    ({**GIVEN, "account": {"owner": "ada", "card_number": HIDDEN}}, "pay: argument 'account' holds .*default"),
    ({**GIVEN, "account": {"owner": "ada", "cardNumber": HIDDEN}}, "pay: argument 'account' holds .*default"),
    ({**GIVEN, "iban": HIDDEN}, "pay: argument 'iban' holds .*, or leave it out, which means its default"),
    ({**GIVEN, "pins": HIDDEN}, "pay: argument 'pins' holds "),
    ({**GIVEN, "pins": [HIDDEN]}, "pay: argument 'pins' holds "),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
async def test_what_stands_for_a_secret_is_not_stored(make_app: MakeApp, arguments: Any, message: str) -> None:
    app = make_app(pay, logs=Logs(secret_keys=("iban",)))
    async with app.running():
        handle = await app.enqueue(pay("4111", Login("ada", "hunter2"), iban="DE99"))
        await app.wait(handle.id, timeout=10)
    waiting = await app.enqueue(pay("4111", Login("ada", "hunter2"), iban="DE99"), delay=3600)
    await app.create_schedule("nightly", every=3600, job=pay("4111", Login("ada", "hunter2"), iban="DE99"))
    for refused in (
        lambda: app.retry(handle.id, arguments=arguments),
        lambda: app.update(waiting.id, arguments=arguments),
        lambda: app.edit_schedule("nightly", arguments=arguments),
        lambda: _enqueue(app, arguments),
    ):
        with pytest.raises(InvalidInput, match=message) as caught:
            await refused()
        assert caught.value.field is not None and caught.value.field in message
    kept = [(await app.get(each)).arguments for each in (handle.id, waiting.id)]
    for each in (*kept, (await app.get_schedule("nightly")).arguments):
        assert each is not None and (each["card"], each["iban"]) == ("4111", "DE99")
        assert each["login"] == Login("ada", "hunter2")
    assert await app.count() == 2


async def _enqueue(app: Any, arguments: Any) -> None:
    await app.enqueue("pay", arguments)


async def test_where_nothing_is_secret_the_text_is_one_like_any_other(make_app: MakeApp) -> None:
    app = make_app(pay)
    waiting = await app.enqueue(pay("4111", Login("ada", "hunter2")), delay=3600)
    info = await app.update(waiting.id, arguments={**GIVEN, "note": HIDDEN, "iban": HIDDEN})
    assert (info.arguments["note"], info.arguments["iban"]) == (HIDDEN, HIDDEN)


async def test_an_item_that_is_a_secret(make_app: MakeApp) -> None:
    app = make_app(scan)
    waiting = await app.enqueue(scan("4111"), delay=3600)
    hidden: Any = HIDDEN
    with pytest.raises(InvalidInput, match=r"scan: argument 'item' holds '\[hidden\]'"):
        await app.update(waiting.id, arguments=hidden)
    assert (await app.get(waiting.id)).arguments == {"item": "4111"}
