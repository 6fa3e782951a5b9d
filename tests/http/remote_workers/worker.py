"""A remote worker that a test moves step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx2

from tests.http.remote_workers.jobs import REMOTE_JOBS

TYPES = [each.name for each in REMOTE_JOBS]


@dataclass(frozen=True, slots=True)
class RemoteWorker:
    client: httpx2.AsyncClient
    id: str
    registered: dict[str, Any]

    @classmethod
    async def register(cls, client: httpx2.AsyncClient, **more: object) -> RemoteWorker:
        answer = await client.post("/v1/worker/register", json=registration(**more))
        assert answer.status_code == 200, answer.text
        return cls(client, answer.json()["worker_id"], answer.json())

    async def call(self, path: str, **body: object) -> httpx2.Response:
        return await self.client.post(f"/v1/worker/{path}", json={"worker_id": self.id, **body})

    async def expect(self, path: str, **body: object) -> dict[str, Any]:
        answer = await self.call(path, **body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def claim(self, slots: int = 1, **more: object) -> list[dict[str, Any]]:
        jobs: list[dict[str, Any]] = (await self.expect("claim", slots=slots, **more))["jobs"]
        return jobs

    async def claim_one(self, **more: object) -> dict[str, Any]:
        [lease] = await self.claim(1, wait="PT10S", **more)
        return lease

    async def beat(self, *leases: dict[str, Any], **more: object) -> dict[str, Any]:
        named = [{**held(each), **more} for each in leases]
        return await self.expect("heartbeat", leases=named)

    async def settle(self, lease: dict[str, Any], status: str, **fields: object) -> dict[str, Any]:
        answer = await self.expect("settle", outcomes=[{**held(lease), "status": status, **fields}])
        [outcome] = answer["outcomes"]
        found: dict[str, Any] = outcome
        return found


def held(lease: dict[str, Any]) -> dict[str, Any]:
    return {"job_id": lease["job_id"], "fence": lease["fence"]}


def registration(**more: object) -> dict[str, object]:
    base: dict[str, object] = {"protocol": 1, "name": "tester", "host": "box", "pid": 1, "client": "test/1"}
    return {**base, "types": TYPES, "concurrency": 4, **more}
