"""Start a server and hold it until killed. Prints its pid, its port and its directory, a line each."""

import signal

from tests.servers.binaries import postgres_binaries
from tests.servers.postgres import Postgres

with Postgres(postgres_binaries("newest")) as server:
    print(server.pid, server.port, server.directory, sep="\n", flush=True)
    signal.pause()
