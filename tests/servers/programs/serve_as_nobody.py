"""Start a server and ask it something, as a user who is not root; root becomes nobody first. Prints the answer."""

import os

import psycopg

from tests.servers.account import NOBODY
from tests.servers.binaries import postgres_binaries
from tests.servers.postgres import Postgres

binaries = postgres_binaries("newest")  # as root, should they lie where nobody cannot get
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)

with Postgres(binaries) as server:
    server.restart("immediate")
    with psycopg.connect(server.dsn()) as connection:
        print(os.geteuid(), connection.execute("SELECT 40 + 2").fetchone())
print("left behind" if server.directory.exists() else "gone")
