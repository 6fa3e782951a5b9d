"""ropewalk: a typed, durable work queue and workflow engine."""
