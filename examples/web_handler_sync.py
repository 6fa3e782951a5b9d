"""Enqueue from a threaded web server with the blocking client; in production the worker is another process.

python examples/web_handler_sync.py [file.db]
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import urlopen

from ropewalk import App, job


@job
async def thumbnail(image: str) -> str:
    return f"small-{image}"


app = App(f"sqlite:///{sys.argv[1] if len(sys.argv) > 1 else 'web.db'}", jobs=[thumbnail])


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Answer /pictures/cat.png when the job is durable; a picture has one unfinished job at a time."""
        image = self.path.rpartition("/")[2]
        handle = app.sync.enqueue(thumbnail(image), idempotency_key=image)
        self.send_response(202)
        self.end_headers()
        self.wfile.write(json.dumps({"job": handle.id, "duplicate": handle.duplicate}).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 # the name of the base class
        """Log nothing."""


def ask(url: str) -> dict[str, object]:
    with urlopen(url) as answer:  # noqa: S310 # our own server
        body: dict[str, object] = json.load(answer)
        return body


async def work() -> None:
    async with app.running() as worker:
        await worker.idle()


def main() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}/pictures"
        with ThreadPoolExecutor(8) as clients:
            answers = list(clients.map(ask, [f"{base}/cat-{number % 10}.png" for number in range(40)]))
        server.shutdown()
    print(f"{len(answers)} requests, {len({answer['job'] for answer in answers})} jobs")

    asyncio.run(work())  # in production: `ropewalk worker web_handler_sync:app`
    first = str(answers[0]["job"])
    print(f"{app.sync.get(first).state}: {app.sync.handle(first, thumbnail).result()}")


if __name__ == "__main__":
    main()
