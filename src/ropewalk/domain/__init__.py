"""The pure rules: no I/O, no clock, no randomness, no logging, no async. Start with domain/jobs/states.py."""
