"""S6, safe-3: a process that dies takes its transaction with it, jobs included."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ropewalk import App
from tests.docs.pages import ROOT
from tests.joining.conftest import Place, on
from tests.joining.drivers import Psycopg, Sqlite

PROGRAM = """
import os, sys
import psycopg, ropewalk
from tests.joining.jobs import JOBS, greet

url, dsn, when = sys.argv[1:]
app = ropewalk.App(url, jobs=JOBS, allow_weaker_durability=True)
db = psycopg.connect(dsn) if dsn.startswith("postgresql") else ropewalk.sqlite3.connect(dsn)
app.sync.enqueue_many([greet(str(number)).using(id=f"{when}-{number}") for number in range(100)], connection=db)
db.execute("INSERT INTO mine VALUES ('" + when + "')")
if when == "after":
    db.commit()
os._exit(9)
"""


@on(Psycopg, Sqlite)
@pytest.mark.asyncio
async def test_both_or_neither(app: App, driver: Psycopg, place: Place) -> None:
    for when in ("before", "after"):
        command = [sys.executable, "-c", PROGRAM, place.url, place.dsn, when]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stderr.count("Traceback")) == (9, 0), done.stderr
    assert await driver.run("SELECT word FROM mine") == [("after",)]
    await driver.rollback()
    found = (await app.search(limit=1000)).jobs
    assert sorted(each.id for each in found) == sorted(f"after-{number}" for number in range(100))
