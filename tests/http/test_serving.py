"""`ropewalk serve` and `ropewalk token` as processes of their own, and the bounds of the protocol."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from ropewalk import App
from ropewalk.http import Serve
from ropewalk.http.serving.protocol import HEADER_BYTES_MAX, URL_BYTES_MAX
from ropewalk.http.serving.server import Listening, Server
from tests.http.jobs import ALL_JOBS
from tests.http.server import People, somebody

SHOP = """
from ropewalk import App, job
@job
async def add(a: int, b: int) -> int:
    return a + b
app = App("sqlite:///{path}", jobs=[add])
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop_served.py").write_text(SHOP.format(path=tmp_path / "jobs.db"))
    return tmp_path


@contextmanager
def running(directory: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "ropewalk", "serve", *words, "--json"]
    with subprocess.Popen(
        command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    ) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline()
        finally:
            if process.poll() is None:
                process.kill()


def token(directory: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ropewalk", "token", *words], cwd=directory, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_served_app_runs_jobs_and_ends_on_a_signal(shop: Path) -> None:
    admin = ("create", "me", "--role", "submit", "--role", "read", "--payloads", "full", "--app", "shop_served:app")
    text = token(shop, *admin)
    words = ("shop_served:app", "--bind", "127.0.0.1:0", "--worker")
    with running(shop, *words) as (process, announced):
        url = json.loads(announced)["url"]
        with httpx2.Client(
            base_url=url, headers={"authorization": f"Bearer {text}"}, trust_env=False, timeout=60
        ) as client:
            job = client.post("/v1/jobs", json={"type": "add", "payload": {"a": 1, "b": 2}}).json()
            done = client.get(f"/v1/jobs/{job['job_id']}/wait?timeout=30&include_result=true").json()
            assert done["result"]["output"] == 3
            assert client.get("/health/ready").status_code == 200
            stranger = client.get("/v1/session", headers={"host": "evil.example.com"})
            assert stranger.status_code == 403
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stderr is not None
        lines = [json.loads(line) for line in process.stderr.read().splitlines()]
        served = [line for line in lines if line["logger"] == "ropewalk.http.access"]
        assert {"POST", "GET"} == {line["method"] for line in served}
        assert all(line["status"] in (200, 201, 403) for line in served)


def test_tokens_are_listed_and_revoked(shop: Path) -> None:
    made = json.loads(token(shop, "create", "ci", "--role", "read", "--app", "shop_served:app", "--json"))
    listed = json.loads(token(shop, "list", "--app", "shop_served:app", "--json"))
    assert [(each["id"], each["name"]) for each in listed] == [(made["token_id"], "ci")]
    assert made["token"].split("_", 2)[2] not in json.dumps(listed)
    assert token(shop, "revoke", made["token_id"], "--app", "shop_served:app") == f"revoked {made['token_id']}"
    assert json.loads(token(shop, "list", "--app", "shop_served:app", "--json")) == []


@pytest.fixture
async def address() -> AsyncIterator[tuple[str, int]]:
    """A server of our own kind, on the loop of the test, in memory."""
    app = App("memory://", jobs=ALL_JOBS)
    server = Server(Serve(app, authenticate=People(anna=somebody())), Listening(port=0), grace_seconds=1)
    started = asyncio.Event()
    server.on_started = lambda _: started.set()
    task = asyncio.create_task(server.serve())
    await asyncio.wait_for(started.wait(), 30)
    yield server.servers[0].sockets[0].getsockname()[:2]
    server.stop()
    await task


async def exchange(address: tuple[str, int], data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(data)
    try:
        return await asyncio.wait_for(reader.read(), 30)
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("request_bytes", "field"),
    [
        (b"GET /" + b"a" * URL_BYTES_MAX + b" HTTP/1.1\r\nHost: x\r\n\r\n", "path"),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * HEADER_BYTES_MAX + b"\r\n\r\n", "headers"),
        (b"GET / HTTP/1.1\r\n" + b"X: aaaaaaaa\r\n" * 3000 + b"\r\n", "headers"),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000, "headers"),
        (b"nonsense\r\n\r\n", "request"),
    ],
    ids=["long URL", "long header", "many headers", "endless header", "no HTTP"],
)
async def test_a_request_beyond_the_bounds_is_refused(
    address: tuple[str, int], request_bytes: bytes, field: str
) -> None:
    answer = await exchange(address, request_bytes)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    error = json.loads(body)
    assert error["code"] == "INVALID_REQUEST"
    assert error["details"][0]["field"] == field


async def test_the_bound_of_headers_is_not_one_of_bodies(address: tuple[str, int]) -> None:
    """A body that comes at once with its headers, or behind them, is no part of them."""
    body = b"{" + b" " * 60_000
    head = b"POST /v1/session HTTP/1.1\r\nHost: localhost\r\nAuthorization: x\r\n"
    head += b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body)
    answer = await exchange(address, head + b"\r\n" + body + head + b"Connection: close\r\n\r\n" + body)
    assert answer.count(b"HTTP/1.1 400 ") == 2
    assert answer.count(b"NOT_JSON") == 2


async def test_a_client_that_does_not_finish_its_headers_is_cut_off(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ropewalk.http.serving.protocol.HEADER_SECONDS", 0.2)
    assert b"did not arrive within" in await exchange(address, b"GET / HTTP/1.1\r\nX: a")
    assert await exchange(address, b"") == b""


def test_an_address_that_is_taken_is_an_error_in_one_line(shop: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        bind = f"127.0.0.1:{taken.getsockname()[1]}"
        command = [sys.executable, "-m", "ropewalk", "serve", "shop_served:app", "--bind", bind]
        refused = subprocess.run(command, cwd=shop, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 1
    assert refused.stderr.strip().splitlines()[-1].startswith("error: ")
    assert bind in refused.stderr
