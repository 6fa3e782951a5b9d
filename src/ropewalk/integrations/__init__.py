"""Bridges to other libraries. Nothing here is imported unless you import it."""
