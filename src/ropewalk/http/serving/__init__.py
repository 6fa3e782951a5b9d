"""Running the service on a socket of its own: what `ropewalk serve` does."""
