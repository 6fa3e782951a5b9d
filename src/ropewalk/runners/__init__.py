"""Where handlers run when the worker's own process is not the place: spawned processes that can be killed."""
