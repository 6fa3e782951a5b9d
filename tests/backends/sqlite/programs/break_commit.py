"""Make the log's next write fail while committing, then let it work again. Argument: path.

A file size limit is a disk that refuses a write: EFBIG reaches SQLite as an I/O error, not as a full disk.
"""

import asyncio
import resource
import signal
import sys
from pathlib import Path

from ropewalk.backends.sqlite import SqliteStore
from ropewalk.backends.sqlite.library import sqlite
from ropewalk.domain.jobs.record import NewJob
from ropewalk.errors import OutcomeUnknown
from ropewalk.ports.store.submission import Submission
from ropewalk.runtime.system import SystemRuntime


async def main(path: str) -> None:
    store = SqliteStore(path, SystemRuntime())
    await store.submit([Submission(jobs=[NewJob(id="before", type="t", input=b"{}")])])
    broken = store._writer._db
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (Path(f"{path}-wal").stat().st_size + 4096, most))
    try:
        await store.submit([Submission(jobs=[NewJob(id=f"lost-{n}", type="t", input=b"x" * 4000) for n in range(20)])])
    except OutcomeUnknown as error:
        print("OutcomeUnknown:", error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    await store.submit([Submission(jobs=[NewJob(id="after", type="t", input=b"{}")])])
    assert store._writer._db is not broken, "the connection was used again after an I/O error"
    assert (await store.get("default", ["before", "after", "lost-0"])).jobs.keys() == {"before", "after"}
    await store.close()
    checked = sqlite.connect(path)
    print(checked.execute("PRAGMA integrity_check").fetchone()[0])
    checked.close()


signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
asyncio.run(main(sys.argv[1]))
