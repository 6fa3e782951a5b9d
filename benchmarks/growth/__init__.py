"""Whether what lies around costs: draining with a million finished jobs there, and with a transaction held open.

`python -m benchmarks.growth` (or `make bench-growth`). The finished jobs are submitted and worked off by ropewalk
itself, once a run; nothing here knows its tables.
"""
