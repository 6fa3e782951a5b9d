"""Workflow rules shared by the stores that decide inside their own transaction; each brings a unit of work."""
