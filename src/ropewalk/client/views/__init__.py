"""The views are what a client returns to users: jobs, workflows, schedules and log lines with datetimes and decoded
values."""
