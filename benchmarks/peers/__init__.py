"""Other queues, driven by the same harness as ropewalk, each with its best documented settings.

They live in environments of their own (`make bench-peers` installs `.venv-peers` and node/node_modules) and run in
processes of their own: one that submits, others that work. known.py says which there are, process.py how they are
spoken to; python/ and node/ are what runs there and know nothing of ropewalk.
"""
