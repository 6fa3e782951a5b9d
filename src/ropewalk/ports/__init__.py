"""Protocols for what the library needs from outside. Their docstrings are the contract for implementations."""
