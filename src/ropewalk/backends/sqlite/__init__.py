"""The SQLite store: one file, several processes, durable through power loss. Start reading with store.py."""

from ropewalk.backends.sqlite.store import SqliteStore as SqliteStore
