"""The job types that the service knows."""
