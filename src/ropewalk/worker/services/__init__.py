"""The services do maintenance for the whole store in the background. Each has a config and a `run_once`."""
