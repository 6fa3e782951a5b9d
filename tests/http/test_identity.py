"""Tokens, sessions, rates and the audit over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from ropewalk import App
from ropewalk.http import Payloads, Role, Serve
from ropewalk.http.identity.authentication import FAILURES_MAX
from ropewalk.http.identity.tokens import CACHED_SECONDS, KIND, Token
from ropewalk.ports.store.capabilities import DOCUMENTS
from tests.http.jobs import add
from tests.http.server import serving


def token_for(*, tenant: str = "*", roles: tuple[Role, ...] = tuple(Role), **more: object) -> Token:
    settings = {"payloads": Payloads.FULL, **more}
    return Token(id="", secret_hash=b"", name="test", tenant=tenant, roles=roles, **settings)  # type: ignore[arg-type]


@pytest.fixture
def application(app: App) -> Serve:
    return Serve(app)


@pytest.fixture
async def base_url(application: Serve) -> AsyncIterator[str]:
    async with serving(application) as url:
        yield url


@pytest.fixture
async def root(application: Serve, base_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    """The first token, which may do everything for every tenant."""
    _, text = await application.service.tokens.create(token_for())
    async with with_token(base_url, text) as client:
        yield client


def with_token(url: str, text: str | None) -> httpx2.AsyncClient:
    headers = {} if text is None else {"authorization": f"Bearer {text}"}
    return httpx2.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=30)


async def test_a_token_works_until_it_is_revoked(root: httpx2.AsyncClient, base_url: str, app: App) -> None:
    made = await root.post("/v1/tokens", json={"name": "billing", "roles": ["SUBMIT", "READ"], "tenant": "acme"})
    assert made.status_code == 201, made.text
    token = made.json()
    assert token["token"].startswith(f"rw_{token['token_id']}_")
    async with with_token(base_url, token["token"]) as acme:
        me = (await acme.get("/v1/session")).json()
        assert (me["tenant"], me["roles"], me["payloads"]) == ("acme", ["SUBMIT", "READ"], "REDACTED")
        job = {"type": "add", "payload": {"a": 1, "b": 2}}
        assert (await acme.post("/v1/jobs", json=job)).status_code == 201
        assert (await acme.get("/v1/tokens")).status_code == 403
        assert (await root.delete(f"/v1/tokens/{token['token_id']}")).status_code == 204
        await app._app_state.runtime.sleep(CACHED_SECONDS)
        assert (await acme.get("/v1/session")).status_code == 401
    assert (await root.get(f"/v1/tokens/{token['token_id']}")).status_code == 404


async def test_only_who_has_a_token_uses_it(root: httpx2.AsyncClient, base_url: str) -> None:
    made = (await root.post("/v1/tokens", json={"name": "billing", "roles": ["SUBMIT"]})).json()
    path = f"/v1/tokens/{made['token_id']}"
    await root.get(path)
    async with with_token(base_url, f"rw_{made['token_id']}_guess") as guessing:
        assert (await guessing.get("/v1/session")).status_code == 401
    [shown] = [each for each in (await root.get("/v1/tokens")).json()["tokens"] if each["name"] == "billing"]
    assert shown["last_used_at"] is None
    async with with_token(base_url, made["token"]) as owner:
        assert (await owner.get("/v1/session")).status_code == 200
    [shown] = [each for each in (await root.get("/v1/tokens")).json()["tokens"] if each["name"] == "billing"]
    assert shown["last_used_at"] is not None


async def test_the_store_never_has_the_secret(root: httpx2.AsyncClient, app: App) -> None:
    made = (await root.post("/v1/tokens", json={"name": "billing", "roles": ["SUBMIT"]})).json()
    secret = made["token"].split("_", 2)[2]
    documents = DOCUMENTS.of(app._app_state.store)
    page = await documents.list_documents(KIND, limit=10)
    assert len(page.documents) == 2
    assert all(secret.encode() not in document.body for document in page.documents)
    assert secret not in (await root.get("/v1/tokens")).text


@pytest.mark.parametrize(
    "change",
    [
        {"tenant": "*"},
        {"tenant": "other"},
        {"roles": ["ADMIN", "OPERATE"]},
        {"payloads": "FULL"},
        {"types": ["add", "fail"]},
        {"types": None},
        {"expires_at": None},
        {"expires_at": (datetime.now(UTC) + timedelta(days=2)).isoformat()},
    ],
)
async def test_a_token_can_do_no_more_than_its_maker(
    root: httpx2.AsyncClient, base_url: str, change: dict[str, object]
) -> None:
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    bounds = {"name": "n", "roles": ["ADMIN"], "tenant": "acme", "types": ["add"], "expires_at": tomorrow}
    maker = (await root.post("/v1/tokens", json=bounds)).json()["token"]
    async with with_token(base_url, maker) as client:
        assert (await client.post("/v1/tokens", json=bounds)).status_code == 201
        assert (await client.post("/v1/tokens", json={**bounds, **change})).status_code == 403


async def test_an_admin_of_one_tenant_sees_its_own_tokens(root: httpx2.AsyncClient, base_url: str) -> None:
    foreign = (await root.post("/v1/tokens", json={"name": "x", "roles": ["READ"], "tenant": "other"})).json()
    admin = (await root.post("/v1/tokens", json={"name": "a", "roles": ["ADMIN"], "tenant": "acme"})).json()
    async with with_token(base_url, admin["token"]) as client:
        assert [each["name"] for each in (await client.get("/v1/tokens")).json()["tokens"]] == ["a"]
        assert (await client.get(f"/v1/tokens/{foreign['token_id']}")).status_code == 404
        assert (await client.delete(f"/v1/tokens/{foreign['token_id']}")).status_code == 404


async def test_a_browser_logs_in_and_out(application: Serve, base_url: str) -> None:
    _, text = await application.service.tokens.create(token_for(tenant="default"))
    own_page = {"sec-fetch-site": "same-origin", "x-ropewalk": "1"}
    async with with_token(base_url, None) as browser:
        foreign = await browser.post("/v1/session", json={"token": text})
        assert foreign.status_code == 403
        logged_in = await browser.post("/v1/session", json={"token": text}, headers=own_page)
        assert logged_in.status_code == 201
        cookie = logged_in.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert (await browser.get("/v1/session")).json()["session"] is True
        assert (await browser.post("/v1/queues/q/pause")).status_code == 403
        cross = {"sec-fetch-site": "cross-site", "x-ropewalk": "1"}
        assert (await browser.post("/v1/queues/q/pause", headers=cross)).status_code == 403
        assert (await browser.post("/v1/queues/q/pause", headers=own_page)).status_code == 200
        kept = dict(browser.cookies)
        assert (await browser.delete("/v1/session", headers=own_page)).status_code == 204
        browser.cookies.update(kept)
        assert (await browser.get("/v1/session")).status_code == 401


async def test_a_session_ends_with_its_token(application: Serve, base_url: str, app: App) -> None:
    token, text = await application.service.tokens.create(token_for(tenant="default"))
    async with with_token(base_url, None) as browser:
        own_page = {"sec-fetch-site": "same-origin", "x-ropewalk": "1"}
        await browser.post("/v1/session", json={"token": text}, headers=own_page)
        await application.service.tokens.revoke(token.id)
        assert (await browser.get("/v1/session")).status_code == 401


async def test_an_address_that_guesses_is_held_off(base_url: str, application: Serve) -> None:
    _, text = await application.service.tokens.create(token_for())
    async with with_token(base_url, "rw_0123456789abcdef_guess") as client:
        answers = [(await client.get("/v1/session")).status_code for _ in range(FAILURES_MAX + 1)]
    assert answers == [401] * FAILURES_MAX + [429]
    async with with_token(base_url, text) as client:
        held_off = await client.get("/v1/session")
    assert held_off.status_code == 429
    assert held_off.json()["limit"] == "authentication"


async def test_a_token_with_a_rate_is_held_to_it(application: Serve, base_url: str) -> None:
    _, text = await application.service.tokens.create(token_for(requests_per_second=0.5))
    async with with_token(base_url, text) as client:
        first, second = await client.get("/v1/session"), await client.get("/v1/session")
    assert (first.status_code, first.headers["ratelimit"]) == (200, '"requests";r=0;t=1')
    assert (second.status_code, second.json()["limit"]) == (429, "requests")
    assert int(second.headers["retry-after"]) >= 1


async def test_the_audit_tells_who_did_what(root: httpx2.AsyncClient, app: App) -> None:
    job = await app.enqueue(add(1, 2))
    await root.post(f"/v1/jobs/{job.id}/cancel", json={"reason": "wrong"}, headers={"x-request-id": "r-1"})
    await root.post("/v1/jobs/nobody/trigger")
    await root.post("/v1/jobs", json={"type": "add", "payload": {"a": 1, "b": 2}})
    entries = (await root.get("/v1/audit")).json()["entries"]
    assert [(each["operation"], each["outcome"]) for each in entries] == [("trigger_job", "404"), ("cancel_job", "200")]
    assert (entries[1]["reason"], entries[1]["request_id"]) == ("wrong", "r-1")
    assert entries[1]["subject"].startswith("token:")
    assert entries[1]["address"] == "127.0.0.1"
