"""`ropewalk demo`: a small real workload on real worker processes, two of which come to grief on purpose.

command   the command line            fleet      the worker processes
jobs      the job types they run      watch      looks at the store and tells what is new
story     what happens, in order      sentences  how it is told
promises  what must have come true    screen     where it is shown
"""
