"""Tests of your own jobs. They need pytest and pytest-asyncio; ropewalk brings the fixtures.

pytest -o asyncio_mode=auto examples/testing_example
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from orders import app, confirm, mailer, remind

from ropewalk import App, CancelStatus, State
from ropewalk.testing import Rehearsal

Rehearse = Callable[[App], Rehearsal]


@pytest.fixture(autouse=True)
def _empty_mailer() -> None:
    mailer.sent.clear()


async def test_an_order_is_confirmed_and_reminded_of(rehearse: Rehearse) -> None:
    rehearsal = rehearse(app)
    await rehearsal.run(confirm("order-7"))
    assert mailer.sent == ["thank you for order-7"]

    reminder = await rehearsal.assert_enqueued(remind, order="order-7")
    assert reminder.state is State.DELAYED

    await rehearsal.advance(hours=24)
    await rehearsal.drain()
    assert mailer.sent[1:] == ["remember order-7"]


async def test_a_paid_order_is_not_reminded_of(rehearse: Rehearse) -> None:
    rehearsal = rehearse(app)
    reminder = await rehearsal.run(confirm("order-8"))
    assert (await rehearsal.cancel(reminder, reason="paid")).status is CancelStatus.CANCELLED
    await rehearsal.advance(days=2)
    assert await rehearsal.drain() == 0


async def test_a_lost_mail_server_is_tried_again_after_a_minute(rehearse: Rehearse) -> None:
    rehearsal = rehearse(app)
    handle = await rehearsal.enqueue(confirm("unlucky"))
    await rehearsal.drain()
    assert (await handle.status()).state is State.RETRYING
    assert mailer.sent == []

    await rehearsal.advance(minutes=1)
    await rehearsal.drain()
    assert (await handle.status()).state is State.COMPLETED
    await rehearsal.assert_not_enqueued(remind, order="order-7")
