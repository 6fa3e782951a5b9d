"""The PostgreSQL store: many processes and machines, durable through power loss. Start reading with store.py."""

from ropewalk.backends.postgres.store import PostgresStore as PostgresStore
