"""Handlers with `executor="process"` run in processes of their own, which the worker spawns and can kill."""
