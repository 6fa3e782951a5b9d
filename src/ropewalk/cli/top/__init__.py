"""`ropewalk top`: a live view of a store.

| module | what it does |
|---|---|
| `command` | defines the options of the command |
| `snapshot` | defines what one view of the store contains |
| `snapshot_reader` | reads a snapshot from the store; no other module calls the client, except to pause a queue |
| `rates` | computes jobs per second from two or more readings |
| `frame`, `sections` | lay a snapshot out as text of a given size, and its tables |
| `figures` | format numbers and bars |
| `controls` | translates keys into changes of the view |
| `screen` | runs the loop of reading, drawing and waiting for keys in a terminal |
"""
