"""Remote workers: jobs that are claimed, renewed and settled through HTTP."""
