"""Open a store as a user who may not; root becomes nobody first, for root may everything. Argument: path."""

import asyncio
import os
import sys
from pathlib import Path

from ropewalk.backends.sqlite import SqliteStore
from ropewalk.errors import StoreUnavailable
from ropewalk.runtime.system import SystemRuntime


def become_nobody(directory: Path) -> None:
    for place in (directory, *directory.parents):
        if not place.stat().st_mode & 0o001:
            place.chmod(place.stat().st_mode | 0o011)  # let nobody pass
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)


async def main(path: Path) -> None:
    try:
        await SqliteStore(path, SystemRuntime()).open()
    except StoreUnavailable as error:
        print(error)


if os.geteuid() == 0:
    become_nobody(Path(sys.argv[1]).parent)
asyncio.run(main(Path(sys.argv[1])))
