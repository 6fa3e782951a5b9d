"""Measures ropewalk against the floor of its own substrate: `python -m benchmarks` (or `make bench`).

Every figure is a ratio taken in one run on one machine: each workload is run in turn by ropewalk and by a floor
skeleton (floors/: the least that could be called a queue), through the same harness, handlers and payload. A run
whose jobs do not add up (N submitted = N completed, each one really run) is an error, not a figure.
"""
