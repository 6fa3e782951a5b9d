"""The worker: claims jobs, runs their handlers, settles what came of them, and does its share of the upkeep."""
