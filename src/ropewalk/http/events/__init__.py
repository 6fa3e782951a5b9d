"""Events over HTTP, as server-sent events."""
