"""Sessions that later stores use again hold nothing of the store before, and go when they are of no use."""

from __future__ import annotations

import os
from collections.abc import Iterator

import psycopg
import pytest

from ropewalk.backends.postgres.address import Address
from ropewalk.backends.postgres.opening import connect
from ropewalk.backends.postgres.wire.connection import WatchedConnection
from tests.backends.postgres.kept_sessions import KeptSessions


@pytest.fixture
def address(postgres_database: str) -> Iterator[Address]:
    """Its sessions are kept for one test: the database must have no visitor afterwards."""
    address, sessions = Address.of(postgres_database), KeptSessions()
    sessions.keep(address.url)
    with sessions.used_by_stores():
        yield address


def closed(connection: WatchedConnection) -> int:
    """The number of its session."""
    pid = connection.info.backend_pid
    connection.close()
    return pid


def test_a_session_is_used_again_and_holds_nothing(address: Address) -> None:
    first = connect(address)
    first.execute(b"SET search_path TO elsewhere")
    first.execute(b"LISTEN news")
    first.execute(b"SELECT pg_advisory_lock(1)")
    first.execute(b"PREPARE one AS SELECT 1")
    pid = closed(first)
    with connect(address) as second:
        assert second.info.backend_pid == pid
        assert second.execute(b"SHOW search_path").fetchone() == ('"$user", public',)
        assert second.execute(b"SELECT count(*) FROM pg_listening_channels()").fetchone() == (0,)
        assert second.execute(b"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone() == (0,)
        assert second.execute(b"SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
        assert second.autocommit


def test_a_closed_connection_is_closed(address: Address) -> None:
    connection = connect(address)
    connection.close()
    assert connection.closed
    with pytest.raises(psycopg.OperationalError, match="the connection is closed"):
        connection.execute(b"SELECT 1")
    connection.close()
    with connect(address) as one, connect(address) as another:
        assert one.info.backend_pid != another.info.backend_pid


def test_a_session_in_a_transaction_ends_with_its_connection(address: Address) -> None:
    first = connect(address)
    first.execute(b"BEGIN")
    pid = closed(first)
    with connect(address) as second:
        assert second.info.backend_pid != pid


def test_a_session_that_the_server_has_ended_is_not_used(address: Address) -> None:
    first, other = connect(address), connect(address)
    pid = closed(first)
    other.execute(b"SELECT pg_terminate_backend(%s, 5000)", (pid,))
    with connect(address) as second:
        assert second.info.backend_pid not in {pid, other.info.backend_pid}
    other.close()


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # the child only connects
def test_another_process_has_its_own(address: Address) -> None:
    pid = closed(connect(address))
    child = os.fork()
    if child == 0:
        failed = True
        try:
            failed = closed(connect(address)) == pid
        finally:
            os._exit(failed)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with connect(address) as second:
        assert second.info.backend_pid == pid


def test_sessions_of_other_addresses_are_not_kept(address: Address, postgres_schema: str) -> None:
    other = Address.of(postgres_schema)
    pid = closed(connect(other))
    with connect(other) as second:
        assert second.info.backend_pid != pid
