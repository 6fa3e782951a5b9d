"""`ropewalk demo`: a small real workload on real worker processes, two of which come to grief on purpose.

command      the command line               watch      looks at the store and tells what is new
performance  one run of it, cleaned up      sentences  how it is told
fleet        the worker processes           screen     where it is shown
jobs         the job types they run         findings   what was seen
story        what happens, in order         promises   what must have come true; summary shows it
"""
