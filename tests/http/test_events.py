"""The stream of events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from ropewalk import App
from ropewalk.http import Payloads, Serve
from ropewalk.http.events.watching import Watcher
from tests.apps import on_shared_stores
from tests.http.jobs import add, fail, stay
from tests.http.server import People, client_of, serving, somebody

Told = tuple[str, dict[str, Any], str | None]


@asynccontextmanager
async def events(client: httpx2.AsyncClient, query: str, **headers: str) -> AsyncIterator[AsyncIterator[Told]]:
    """The events of a stream: name, data and id."""
    async with client.stream("GET", f"/v1/events?{query}", headers=headers) as answer:
        assert answer.status_code == 200, await answer.aread()
        lines = answer.aiter_lines()
        assert (await anext(lines)).startswith(":")
        yield _parsed(lines)


async def _parsed(lines: AsyncIterator[str]) -> AsyncIterator[Told]:
    fields: dict[str, str] = {}
    async for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "event" in fields:
            yield fields["event"], json.loads(fields["data"]), fields.get("id")
            fields = {}


async def first(told: AsyncIterator[Told]) -> Told:
    return await asyncio.wait_for(anext(told), 30)


async def test_a_named_job_is_told_from_its_state_to_its_end(client: httpx2.AsyncClient, app: App) -> None:
    job = await app.enqueue(add(1, 2))
    async with events(client, f"job_id={job.id}") as told:
        kind, data, _ = await first(told)
        assert (kind, data["state"], data["rev"]) == ("QUEUED", "SCHEDULED", 1)
        async with app.worker():
            while (event := await first(told))[1]["state"] != "COMPLETED":
                pass
        assert (event[0], event[1]["rev"]) == ("SUCCEEDED", 3)


@on_shared_stores
async def test_what_another_process_does_to_a_named_job_is_told(
    make_app: Any, server_url: str, app: App, store_kind: str
) -> None:
    other = make_app(add, fail, stay)
    job = await other.enqueue(add(1, 2))
    async with client_of(server_url) as client, events(client, f"job_id={job.id}") as told:
        await first(told)
        await other.cancel(job.id)
        assert (await first(told))[0] == "CANCELLED"


async def test_a_group_and_a_workflow_are_watched(client: httpx2.AsyncClient, app: App) -> None:
    job = await app.enqueue(add(1, 2), workflow_id="w-1")
    async with events(client, f"group_id={job.id}") as group, events(client, "workflow_id=w-1") as workflow:
        assert (await first(group))[1]["job_id"] == (await first(workflow))[1]["job_id"] == job.id
        await app.cancel(job.id)
        assert (await first(group))[0] == (await first(workflow))[0] == "CANCELLED"


async def test_a_stream_without_names_goes_on_where_it_ended(client: httpx2.AsyncClient, app: App) -> None:
    async with events(client, "kind=QUEUED") as told:
        await app.enqueue(add(1, 2))
        name, _, event_id = await first(told)
        assert name == "QUEUED"
        assert event_id is not None
    missed = await app.enqueue(add(3, 4))
    async with events(client, "kind=QUEUED", **{"last-event-id": event_id}) as told:
        assert (await first(told))[1]["job_id"] == missed.id
    async with events(client, "kind=QUEUED", **{"last-event-id": "another-server-7"}) as told:
        assert (await first(told))[0] == "resync"


async def test_a_stream_shows_what_its_identity_reaches(app: App, server_url: str, people: People) -> None:
    people.identities["adder"] = somebody(types=frozenset({"add"}), payloads=Payloads.NONE)
    people.identities["bob"] = somebody(tenant="bob")
    hidden = await app.enqueue(stay(1))
    shown = await app.enqueue(add(1, 2))
    query = f"job_id={hidden.id}&job_id={shown.id}"
    async with client_of(server_url, "adder") as adder, events(adder, query) as told:
        assert (await first(told))[1]["job_id"] == shown.id
    async with client_of(server_url, "bob") as bob, events(bob, query) as told:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(told), 2.5)


async def test_a_stream_ends_when_its_identity_is_lost(app: App, server_url: str, people: People) -> None:
    people.identities["guest"] = somebody()
    async with client_of(server_url, "guest") as guest, events(guest, "") as told:
        del people.identities["guest"]
        assert (await first(told))[0] == "bye"


async def test_a_stream_ends_when_the_server_drains(app: App, people: People) -> None:
    application = Serve(app, authenticate=people)
    async with serving(application) as url, client_of(url) as client, events(client, "") as told:
        application.drain()
        assert (await first(told))[0] == "bye"


async def test_a_stream_is_told_how_much_it_is_not_sent(
    client: httpx2.AsyncClient, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ropewalk.http.events.stream.PER_SECOND_MAX", 2)
    async with events(client, "kind=QUEUED") as told:
        await app.enqueue_many([add(number, 0) for number in range(10)])
        counted = 0
        while counted < 10:
            name, data, _ = await first(told)
            counted += data["dropped"] if name == "dropped" else 1
    assert counted == 10


async def test_a_client_that_falls_behind_is_cut_off(
    app: App, server_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client reads nothing, so that the server can send no more than the buffers between them hold."""
    monkeypatch.setattr("ropewalk.http.events.stream.BEHIND_BYTES_MAX", 10_000)
    host, _, port = server_url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
    writer.write(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer anna\r\n\r\n")
    await reader.readuntil(b": ropewalk\n\n")
    for _ in range(200):
        await app.enqueue_many([add(number, 0) for number in range(900)])
        if reader.at_eof() or writer.is_closing():
            break
        await asyncio.sleep(0)
    received = await asyncio.wait_for(reader.read(), 60)
    assert received.count(b"event: QUEUED") < 200 * 900
    writer.close()


async def test_a_reading_that_fails_does_not_end_the_watching(
    client: httpx2.AsyncClient, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, failed = Watcher._read, asyncio.Event()

    async def fail_once(watcher: Watcher) -> None:
        if not failed.is_set():
            failed.set()
            raise ValueError("nobody expects this error")
        await read(watcher)

    monkeypatch.setattr(Watcher, "_read", fail_once)
    job = await app.enqueue(add(1, 2))
    async with events(client, f"job_id={job.id}") as told:
        assert (await first(told))[1]["job_id"] == job.id
    assert failed.is_set()
