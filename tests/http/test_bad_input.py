"""What no client should send is refused with the documented error, before anything is written, and never with 500."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import httpx2
import pytest

from ropewalk import App
from ropewalk.http import Serve
from ropewalk.http.decoding import DEPTH_MAX
from ropewalk.http.request import BODY_BYTES_MAX
from tests.http.jobs import ALL_JOBS
from tests.http.server import People, client_of, serving, somebody
from tests.servers.postgres import Postgres
from tests.servers.proxy import Proxy

in_memory = pytest.mark.parametrize("store_kind", ["memory"], indirect=True)
JOB = {"type": "add", "payload": {"a": 1, "b": 2}}


def refused(answer: httpx2.Response) -> tuple[int, str, str | None, str]:
    """The status, the code, and the first thing that is wrong."""
    error = answer.json()
    detail = error["details"][0]
    return answer.status_code, error["code"], detail["field"], detail["code"]


def bad(field: str | None, detail: str) -> tuple[int, str, str | None, str]:
    return 400, "INVALID_REQUEST", field, detail


def nested(levels: int) -> str:
    return '{"type": "add", "payload": {"a": ' + "[" * (levels - 2) + "]" * (levels - 2) + "}}"


@in_memory
@pytest.mark.parametrize(
    ("body", "field", "detail"),
    [
        (b"", "body", "NOT_JSON"),
        (b"   ", "body", "NOT_JSON"),
        (b"{", "body", "NOT_JSON"),
        (b'{"type": "add",}', "body", "NOT_JSON"),
        (b"{'type': 'add'}", "body", "NOT_JSON"),
        (b"[" * 100_000, "body", "TOO_DEEP"),
        (b'{"a":' * 100_000, "body", "TOO_DEEP"),
        (nested(DEPTH_MAX + 1).encode(), "body", "TOO_DEEP"),
        (b'{"type": "add", "payload": {"a": NaN, "b": 2}}', "body", "NOT_JSON"),
        (b'{"type": "\xff\xfe", "payload": {}}', "body", "NOT_JSON"),
        (b'{"type": "\\ud800", "payload": {}}', "body", "NOT_JSON"),
        (b"null", "body", "WRONG_TYPE"),
        (b"[]", "body", "WRONG_TYPE"),
        (b'{"type": "add"}', "payload", "MISSING"),
        (b'{"type": 7, "payload": {}}', "type", "WRONG_TYPE"),
        (b'{"type": "", "payload": {}}', "type", "OUT_OF_RANGE"),
        (b'{"type": "nobody", "payload": {}}', "type", "UNKNOWN_TYPE"),
        (b'{"type": "add", "payload": {"a": 1, "b": 2, "c": 3}}', "payload", "BAD_INPUT"),
        (b'{"type": "add", "payload": {"a": 1, "b": "x"}}', "payload", "BAD_INPUT"),
        (b'{"type": "add", "payload": {"a": 1, "b": {"$rw": "bytes", "v": "!"}}}', "payload", "BAD_INPUT"),
    ],
)
async def test_a_body_that_does_not_fit(
    client: httpx2.AsyncClient, app: App, body: bytes, field: str, detail: str
) -> None:
    answer = await client.post("/v1/jobs", content=body, headers={"content-type": "application/json"})
    status, code, at, said = refused(answer)
    assert (status, code, said) == (400, "INVALID_REQUEST", detail), answer.text
    assert (at or "").split(".")[0] == field
    assert await app.count() == 0


@in_memory
@pytest.mark.parametrize(
    ("change", "field", "detail"),
    [
        ({"id": "a\0b"}, "id", "OUT_OF_RANGE"),
        ({"queue": "\0"}, "queue", "OUT_OF_RANGE"),
        ({"tags": {"a\0": "b"}}, "tags", "OUT_OF_RANGE"),
        ({"id": "n" * 257}, "id", "OUT_OF_RANGE"),
        ({"id": "\U0001f600" * 161}, "id", "LIMIT_EXCEEDED"),
        ({"tags": {str(each): "v" for each in range(33)}}, "tags", "OUT_OF_RANGE"),
        ({"priority": "URGENT"}, "priority", "OUT_OF_RANGE"),
        ({"priority": 1001}, "priority", "OUT_OF_RANGE"),
        ({"priority": 0.5}, "priority", "OUT_OF_RANGE"),
        ({"dependency_type": "BEFORE"}, "dependency_type", "OUT_OF_RANGE"),
        ({"delay": "P1M"}, "delay", "OUT_OF_RANGE"),
        ({"delay": "PT5"}, "delay", "OUT_OF_RANGE"),
        ({"delay": -1}, "delay", "OUT_OF_RANGE"),
        ({"delay": 1e300}, "delay", "OUT_OF_RANGE"),
        ({"scheduled_at": "2026-01-01T00:00:00"}, "scheduled_at", "WRONG_TYPE"),
        ({"scheduled_at": "soon"}, "scheduled_at", "WRONG_TYPE"),
        ({"max_attempts": 0}, "max_attempts", "OUT_OF_RANGE"),
        ({"max_attempts": True}, "max_attempts", "WRONG_TYPE"),
        ({"depends_on": ["absent"]}, "depends_on", "BAD_INPUT"),
        ({"on_failure": "nobody"}, "on_failure", "UNKNOWN_TYPE"),
        ({"limit": "family*"}, "limit", "OUT_OF_RANGE"),
        ({"lane": "fast"}, "lane", "UNKNOWN_FIELD"),
    ],
)
async def test_a_field_that_does_not_fit(
    client: httpx2.AsyncClient, app: App, change: dict[str, object], field: str, detail: str
) -> None:
    answer = await client.post("/v1/jobs", json={**JOB, **change})
    assert refused(answer) == bad(field, detail), answer.text
    assert await app.count() == 0


@in_memory
async def test_the_last_of_equal_keys_counts(client: httpx2.AsyncClient) -> None:
    body = b'{"type": "nobody", "type": "add", "payload": {"a": 9, "a": 1, "b": 2}}'
    made = await client.post("/v1/jobs", content=body, headers={"content-type": "application/json"})
    assert made.status_code == 201
    assert (await client.get(f"/v1/jobs/{made.json()['job_id']}")).json()["payload"] == {"a": 1, "b": 2}


@in_memory
async def test_a_body_may_be_as_deep_as_the_bound(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/v1/jobs", content=nested(DEPTH_MAX), headers={"content-type": "application/json"})
    assert refused(answer)[3] != "TOO_DEEP"
    brackets = {"type": "fail", "payload": {"message": "[" * 1000 + '\\"{'}}
    assert (await client.post("/v1/jobs", json=brackets)).status_code == 201


@in_memory
@pytest.mark.parametrize(
    "media_type", ["text/plain", "application/xml", "application/jsonp", "multipart/form-data", "\xff"]
)
async def test_another_content_type(client: httpx2.AsyncClient, media_type: str) -> None:
    headers = [(b"content-type", media_type.encode("latin-1"))]
    answer = await client.post("/v1/jobs", content=json.dumps(JOB), headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert answer.headers["accept"] == "application/json"


@in_memory
async def test_a_body_that_is_too_large(client: httpx2.AsyncClient, server_url: str) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(BODY_BYTES_MAX // 2**20):
            yield b" " * 2**20
        yield b" "

    too_much = await client.post("/v1/jobs", content=b" " * (BODY_BYTES_MAX + 1))
    assert (too_much.status_code, too_much.json()["code"]) == (413, "PAYLOAD_TOO_LARGE")
    in_chunks = await client.post("/v1/jobs", content=chunks(), headers={"content-type": "application/json"})
    assert (in_chunks.status_code, in_chunks.json()["code"]) == (413, "PAYLOAD_TOO_LARGE")
    just_fits = json.dumps(JOB).encode().ljust(BODY_BYTES_MAX)
    made = await client.post("/v1/jobs", content=just_fits, headers={"content-type": "application/json"})
    assert made.status_code == 201


@in_memory
async def test_a_body_that_does_not_come(server_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ropewalk.http.request.BODY_SECONDS", 0.2)
    answer = await exchange(server_url, head("/v1/jobs", length=100) + b'{"type"')
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["details"][0]["field"] == "body"


@in_memory
async def test_a_client_that_goes_away_writes_nothing_and_is_no_error(
    server_url: str, app: App, client: httpx2.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    host, port = server_url.removeprefix("http://").split(":")
    for sent in (head("/v1/jobs", length=100) + b'{"type"', head("/v1/jobs/absent/cancel", length=5)):
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(sent)
        await writer.drain()
        writer.transport.abort()
    made = (await client.post("/v1/jobs", json=JOB)).json()
    with pytest.raises(httpx2.TimeoutException):
        await client.get(f"/v1/jobs/{made['job_id']}/wait?timeout=30", timeout=0.2)
    await asyncio.sleep(0.1)
    assert (await client.get("/health/ready")).status_code == 200
    assert await app.count() == 1
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


@in_memory
@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/jobs/.", "id"),
        ("/v1/jobs/..", "id"),
        ("/v1/jobs/%2e%2e", "id"),
        ("/v1/jobs//cancel", "id"),
        ("/v1/jobs/a%00b", "id"),
        ("/v1/jobs/%ff", "path"),
        ("/v1/jobs/%ed%a0%80", "path"),
        ("/v1/jobs/" + "n" * 257, "id"),
        ("/v1/jobs?with_total=1", "with_total"),
        ("/v1/jobs?with_total=true&with_total=false", "with_total"),
        ("/v1/jobs?limit=10&limit=20", "limit"),
        ("/v1/jobs?limit=0", "limit"),
        ("/v1/jobs?limit=ten", "limit"),
        ("/v1/jobs?limit=1e2", "limit"),
        ("/v1/jobs?created_after=7", "created_after"),
        ("/v1/jobs?created_after=2026-01-01T00:00:00", "created_after"),
        ("/v1/jobs?states=DONE", "states[0]"),
        ("/v1/jobs?colour=red", "colour"),
        ("/v1/jobs?text=%ff", "query"),
        ("/v1/jobs?cursor=x", "cursor"),
        ("/v1/jobs?tags=colour", "tags[0]"),
        ("/v1/jobs?types=a%00", "types[0]"),
        ("/v1/stats?slices=0", "slices"),
        ("/v1/jobs/x/wait?timeout=31", "timeout"),
        ("/v1/jobs/x/wait?timeout=nan", "timeout"),
    ],
)
async def test_a_path_or_query_that_does_not_fit(server_url: str, path: str, field: str) -> None:
    """Sent as bytes, because a client would tidy up the path."""
    method = "POST" if path.endswith("/cancel") else "GET"
    answer = await exchange(server_url, head(path, method=method))
    assert answer.startswith(b"HTTP/1.1 400 "), answer
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["details"][0]["field"] == field


@in_memory
async def test_a_cursor_of_another_question(client: httpx2.AsyncClient, app: App) -> None:
    for _ in range(2):
        await client.post("/v1/jobs", json=JOB)
    cursor = (await client.get("/v1/jobs?limit=1")).json()["next_cursor"]
    assert (await client.get(f"/v1/jobs?limit=1&cursor={cursor}")).status_code == 200
    for other in (
        "/v1/jobs?states=FAILED&",
        "/v1/jobs?order=CREATED_ASC&",
        "/v1/failures?",
        "/v1/tokens?",
        "/v1/audit?",
    ):
        assert refused(await client.get(f"{other}cursor={cursor}")) == bad("cursor", "BAD_CURSOR"), other


@in_memory
@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"idempotency-key", b""),
        (b"idempotency-key", b"k" * 257),
        (b"idempotency-key", b"a b"),
        (b"idempotency-key", b"\xc3\xa9"),
        (b"ropewalk-tenant", b"\xff"),
        (b"ropewalk-tenant", b"*"),
        (b"ropewalk-tenant", b"t" * 257),
    ],
)
async def test_a_header_that_does_not_fit(server_url: str, people: People, name: bytes, value: bytes) -> None:
    people.identities["root"] = somebody(tenant="*")
    async with client_of(server_url, "root") as root:
        answer = await root.post("/v1/jobs", json=JOB, headers=[(name, value)])
    assert answer.status_code == 400, answer.text
    assert answer.json()["details"][0]["field"].lower() == name.decode()


@in_memory
@pytest.mark.parametrize(
    "token", ["rw_", "rw__", "rw_a_b", "rw_\0_x", "rw_" + "a" * 500 + "_x", "rw_\ud7ff_é", "other"]
)
async def test_a_token_that_is_none(app: App, token: str) -> None:
    own_page = {"sec-fetch-site": "same-origin", "x-ropewalk": "1"}
    async with serving(Serve(app)) as url, httpx2.AsyncClient(base_url=url, trust_env=False) as nobody:
        body = json.dumps({"token": token}).encode()
        answer = await nobody.post(
            "/v1/session", content=body, headers={**own_page, "content-type": "application/json"}
        )
        assert answer.status_code == (401 if len(token) <= 512 else 400), answer.text


async def test_a_store_that_is_away_is_503_until_it_is_back(
    newest_postgres: Postgres, schemas_of: object, request: pytest.FixtureRequest
) -> None:
    schemas = schemas_of(newest_postgres)  # type: ignore[operator]
    schema = schemas.take()
    async with Proxy(newest_postgres.port) as proxy:
        through = newest_postgres.dsn().replace(f":{newest_postgres.port}/", f":{proxy.port}/")
        async with App(f"{through}?schema={schema}", jobs=ALL_JOBS, allow_weaker_durability=True) as app:
            people = People(anna=somebody())
            async with serving(Serve(app, authenticate=people)) as url, client_of(url) as client:
                assert (await client.post("/v1/jobs", json=JOB)).status_code == 201
                proxy.refuse()
                for method, path in (
                    ("GET", "/v1/jobs/x"),
                    ("GET", "/v1/queues"),
                    ("POST", "/v1/jobs"),
                    ("GET", "/health"),
                ):
                    answer = await client.request(method, path, json=JOB if method == "POST" else None)
                    assert answer.status_code == 503, (path, answer.text)
                assert (await client.get("/health/ready")).json() == {"ready": False, "reason": "store"}
                refusal = await client.post("/v1/jobs/x/trigger")
                assert refusal.json()["code"] in ("UNAVAILABLE", "OUTCOME_UNKNOWN")
                assert int(refusal.headers["retry-after"]) >= 1
                assert (await client.get("/health/live")).status_code == 200
                await proxy.accept_again()
                async with asyncio.timeout(60):
                    while (await client.get("/health/ready")).status_code != 200:
                        await asyncio.sleep(0.1)
                assert (await client.post("/v1/jobs", json=JOB)).status_code == 201
                assert await app.count() == 2
    schemas.give_back(schema)


def head(path: str, *, method: str = "POST", length: int = 0) -> bytes:
    lines = (
        f"{method} {path} HTTP/1.1",
        "host: localhost",
        "authorization: Bearer anna",
        "content-type: application/json",
        f"content-length: {length}",
        "connection: close",
    )
    return "\r\n".join((*lines, "", "")).encode()


async def exchange(url: str, sent: bytes) -> bytes:
    """Sends bytes and reads the answer until the server closes the connection."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(sent)
    try:
        async with asyncio.timeout(20):
            return await reader.read()
    finally:
        writer.close()
