"""Jobs, workflows, schedules and log lines as people see them."""
