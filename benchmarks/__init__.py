"""Measures ropewalk against the floor of its own substrate and beside its peers: `python -m benchmarks`.

Every figure is a ratio taken in one run on one machine: each workload is run in turn by ropewalk, by a floor skeleton
(floors/: the least that could be called a queue) and by other queues (peers/), through the same harness and payload. A
run whose jobs do not add up (N submitted = N completed, each one really run) is an error, not a figure.
"""
