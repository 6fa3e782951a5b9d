"""The worker claims jobs, runs their handlers, settles their outcomes, and does its share of the maintenance."""
