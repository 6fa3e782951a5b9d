"""Faults planted into a copy of the source, to see that a test fails (make verify)."""
