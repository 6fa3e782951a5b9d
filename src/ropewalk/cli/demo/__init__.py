"""`ropewalk demo`: a small workload on real worker processes, one of which is killed and one frozen on purpose.

| module | what it does |
|---|---|
| `command` | defines the options of the command |
| `run` | runs the demo in a temporary directory and prints the summary |
| `scenario` | makes things happen, one after another |
| `fleet` | starts, kills, freezes and drains the worker processes |
| `jobs` | defines the job types |
| `job_watcher` | reads the jobs from the store and reports what is new |
| `findings` | collects what was seen, and describes events in sentences |
| `promises` | checks what the demo promises against the findings |
| `screen` | prints to a terminal, to a pipe, or not at all |
"""
