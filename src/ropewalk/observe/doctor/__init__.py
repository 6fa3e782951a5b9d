"""The doctor examines a store: it gathers facts (facts.py), and pure rules derive findings from them. Each rule is
about one subject:

connection  clocks and wake-ups
jobs        leases, pauses, limits, schedules, dead letters, damage
workers     live, silent and draining workers, and jobs that no worker serves

Facts that only one kind of store has, such as the settings of a server, are interpreted by that store. Its findings
come with its facts (ports/store/diagnosis.py); backends/sqlite/findings.py and backends/postgres/findings.py make them.
"""
