"""When schedules fire: cron expressions, calendars, time zones, and which fires are due."""
