"""The in-memory store: complete, and written to be read. To learn what a store must do, start with store.py."""

from ropewalk.backends.memory.store import MemoryStore as MemoryStore
