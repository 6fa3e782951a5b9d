"""Queues over HTTP: what is in them, and pausing them."""
