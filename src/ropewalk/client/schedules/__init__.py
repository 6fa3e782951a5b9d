"""Schedules between the app and its store: functions by name, the jobs of fires, and changes."""
