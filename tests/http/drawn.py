"""What requests that are drawn from the OpenAPI document need beyond it to be accepted.

The document tells the shape of a request. It cannot tell what else must hold: that a job type exists, that a parent is
there, that a time is still to come. `fitting` changes requests that are meant to be accepted, so that this holds, and
leaves alone those that are meant to be refused.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import uvicorn
from schemathesis import Case, GenerationMode
from schemathesis.core import NotSet

from ropewalk import App
from ropewalk.domain.bounds import NAME_BYTES_MAX
from ropewalk.http import Serve
from ropewalk.http.openapi import document
from ropewalk.http.serving.protocol import BoundedProtocol
from tests.http.jobs import ALL_JOBS
from tests.http.server import People, somebody

FUTURE: Final = "2199-01-01T00:00:00Z"


@contextmanager
def served() -> Iterator[str]:
    """A server on a thread of its own, with an app in memory; gives its URL."""
    application = Serve(App("memory://", jobs=ALL_JOBS), authenticate=People(anna=somebody(tenant="*")))
    config = uvicorn.Config(application, port=0, log_level="warning", lifespan="on", http=BoundedProtocol)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), name="server of drawn requests")
    thread.start()
    try:
        while not server.started:
            thread.join(0.01)
            assert thread.is_alive()
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        application.drain()
        server.should_exit = True
        thread.join()


def whole_document() -> dict[str, Any]:
    """The document, in which a literal path also has the methods that it has as the name of a job.

    `GET /v1/jobs/batch` shows the job with the id "batch", and the header Allow of this path tells so.
    """
    whole = document()
    paths = {path: dict(methods) for path, methods in whole["paths"].items()}
    for path, methods in whole["paths"].items():
        if path.startswith("/v1/jobs/") and "{" not in path and path.count("/") == 3:
            for method, operation in whole["paths"]["/v1/jobs/{id}"].items():
                named = {**operation, "operationId": f"{operation['operationId']}_{path.rsplit('/', 1)[1]}"}
                named["parameters"] = [each for each in operation["parameters"] if each["in"] != "path"]
                paths[path] = {**paths[path], **({} if method in methods else {method: named})}
    return {**whole, "paths": paths}


def fitting(case: Case[Any]) -> None:
    """Makes a request acceptable that is meant to be accepted."""
    if case.meta is None or case.meta.generation.mode is not GenerationMode.POSITIVE:
        if "requestBody" in case.operation.definition.raw and isinstance(case.body, NotSet):
            case.body = [0]  # some bodies may be left out, so that leaving them out is no mistake
        return
    case.path_parameters = _short(case.path_parameters)
    case.query = _short(case.query)
    case.body = _short(case.body)
    query, body = case.query or {}, case.body
    if isinstance(query, dict):
        _fit_query(case, query)
    if isinstance(body, dict):
        _fit_body(case, body)


def _fit_query(case: Case[Any], query: dict[str, Any]) -> None:
    query.pop("cursor", None)  # a cursor is what an answer gave
    if "timeout" in query or case.path.endswith("/wait"):
        query["timeout"] = 0  # the test does not wait
    if case.path == "/v1/stats":
        query.pop("after", None)  # must lie before the end of the range of time, by at most a year
        query.pop("before", None)
    case.query = query


def _fit_body(case: Case[Any], body: dict[str, Any]) -> None:
    body.pop("cursor", None)
    if isinstance(body.get("pagination"), dict):
        body["pagination"].pop("cursor", None)
    match case.operation.definition.raw.get("operationId"):
        case "enqueue":
            _fit_job(body)
        case "enqueue_batch":
            for job in body["jobs"]:
                _fit_job(job)
                job.pop("id", None)  # two jobs of a batch cannot have one id
                job.pop("idempotency_key", None)
        case "cancel_job" | "retry_job":
            body.pop("job_id", None)  # must be that of the path
        case "update_job":
            body.pop("payload", None)  # must fit the type of the job
            body.setdefault("priority", 1)  # something must change
        case "complete_job":
            body["output"] = 3  # must fit the result of the type
        case "create_schedule":
            job = {"type": "add", "payload": {"a": 1, "b": 2}}
            case.body = {"name": body["name"], "cron": "30 3 * * *", "job": job}  # of cron and every exactly one
        case "edit_schedule":
            case.body = {"cron": "0 4 * * *"}
        case "register_worker":
            body["protocol"], body["types"] = 1, ["add"]
        case "create_token":
            body.pop("expires_at", None)  # must lie in the future
        case "set_limit":
            _fit_rate(body.get("rate"))
            if body.get("concurrency") is None and body.get("rate") is None:
                body["concurrency"] = 1  # a limit limits something
        case "set_quota":
            _fit_rate(body.get("submissions"))
            if not any(body.values()):
                body["pending"] = 1  # a quota limits something
            if body.get("pending") is not None:
                body["pending"] = min(body["pending"], 100_000)  # every submission counts them


def _fit_job(job: dict[str, Any]) -> None:
    job["type"], job["payload"] = "add", {"a": 1, "b": 2}
    for name in ("depends_on", "dependency_type", "when", "on_unsatisfied", "gate_timeout", "allow_missing"):
        job.pop(name, None)  # a parent must exist
    if "deadline" in job:
        job["deadline"] = FUTURE
    job.pop("on_failure", None)  # must be a registered type
    job.pop("callback_url", None)  # must be an address that webhooks may reach


def _fit_rate(rate: Any) -> None:
    if rate is not None and rate.get("algorithm", "SLIDING") == "SLIDING":
        rate["count"] = min(rate["count"], 1000)  # a sliding window remembers every start


def _short(value: Any) -> Any:
    """The value, whose texts have no more bytes than a name may have. JSON Schema counts characters only."""
    match value:
        case str() if len(value.encode("utf-8", "replace")) > NAME_BYTES_MAX:
            return value[: NAME_BYTES_MAX // 4]
        case dict():
            return {_short(name): _short(inner) for name, inner in value.items()}
        case list():
            return [_short(inner) for inner in value]
        case _:
            return value
