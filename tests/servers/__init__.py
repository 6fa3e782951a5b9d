"""Real servers for tests and benchmarks: started by the project itself, as any user, gone with the run.

What is started lives in a home (home.py) under an account that may serve (account.py); binaries.py says where their
programs come from. postgres.py and pgbouncer.py are the servers, proxy.py a bad network in front of one, databases.py
what a test asks of one, fixtures.py what pytest hands out. Nothing here knows ropewalk.
"""
