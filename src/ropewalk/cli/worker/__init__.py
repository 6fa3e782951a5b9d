"""`ropewalk worker`: one worker in this process, or several under a supervisor."""
