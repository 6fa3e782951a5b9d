"""Schedules of an app: their functions by name, the jobs of their fires, and their changes."""
