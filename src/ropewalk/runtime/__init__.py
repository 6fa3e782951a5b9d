"""The system behind the runtime port: clock, tasks, threads, wake-ups, supervised loops."""
