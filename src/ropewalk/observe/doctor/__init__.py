"""The doctor examines a store: it gathers facts (facts.py), and pure rules make findings of them, one rule a concern.

connection  clocks and wake-ups                     jobs     leases, pauses, limits, schedules, dead letters
workers     who works, and what nobody serves

What only one kind of store knows, such as the settings of a server, that store interprets itself: its findings come
with its facts (ports/store/diagnosis.py), and backends/sqlite/findings.py and backends/postgres/findings.py make them.
"""
