"""A worker without ropewalk: ROPEWALK_URL=http://localhost:8000 ROPEWALK_TOKEN=rw_… python worker.py"""

import json
import os
import random
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

URL, TOKEN = os.environ["ROPEWALK_URL"], os.environ["ROPEWALK_TOKEN"]
stopping = threading.Event()
signal.signal(signal.SIGTERM, lambda number, frame: stopping.set())


def call(path: str, timeout: float = 30, **body: Any) -> Any:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
    request = urllib.request.Request(f"{URL}/v1/worker/{path}", json.dumps(body).encode(), headers)  # noqa: S310
    pause = 0.2
    while True:
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:  # noqa: S310
                return json.loads(answer.read() or b"null")
        except (urllib.error.URLError, TimeoutError) as error:
            if pause > 5 or getattr(error, "code", 503) not in (429, 503):
                raise
            time.sleep(random.uniform(0, pause))  # noqa: S311
            pause *= 2


def copy_rows(job: Any) -> Any:
    rows = job["payload"]["rows"]
    for row in range(job["last_checkpoint"] or 0, rows):
        if job["stop"].is_set():
            return None
        time.sleep(0.05)
        job["progress"] = {"percent": 100 * (row + 1) / rows}
        call("checkpoint", **job["named"], state=row + 1)
    return rows


HANDLERS: dict[str, Callable[[Any], Any]] = {
    "add": lambda job: job["payload"]["a"] + job["payload"]["b"],
    "divide": lambda job: job["payload"]["a"] / job["payload"]["b"],
    "copy_rows": copy_rows,
}


def run(job: Any, worker_id: str, every: float) -> None:
    lease = {"job_id": job["job_id"], "fence": job["fence"]}
    job.update(named={"worker_id": worker_id, **lease}, progress=None, cancelled=False)
    job.update(stop=threading.Event(), done=threading.Event())

    def keep_lease() -> None:  # A thread renews the lease, so that no handler can block this.
        while not job["done"].wait(every):
            beat = call("heartbeat", every, worker_id=worker_id, leases=[{**lease, "progress": job["progress"]}])
            job["cancelled"] = job["cancelled"] or bool(beat["cancel"])
            if beat["lost"] or beat["cancel"]:
                job["stop"].set()

    threading.Thread(target=keep_lease, daemon=True).start()
    try:
        output = HANDLERS[job["type"]](job)
        end = {"status": "CANCELLED"} if job["cancelled"] else {"status": "COMPLETED", "output": output}
    except Exception as error:
        end = {"status": "RETRY", "error": {"message": str(error), "code": type(error).__name__}}
    job["done"].set()
    call("settle", worker_id=worker_id, outcomes=[{**lease, **end}])


about: dict[str, Any] = {"name": "example", "host": "here", "pid": os.getpid(), "client": "example/1"}
me = call("register", protocol=1, types=list(HANDLERS), concurrency=1, **about)["worker_id"]
while not stopping.is_set() and not call("heartbeat", worker_id=me, leases=[])["drain"]:
    for claimed in call("claim", worker_id=me, slots=1, wait=2)["jobs"]:
        run(claimed, me, every=0.3)
call("deregister", worker_id=me)
