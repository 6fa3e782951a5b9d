"""The async engine: enqueues, claims, runs, settles. Knows ports and definitions, never a backend."""
