"""The doctor: facts are gathered (facts.py), rules make findings of them, each of one concern and pure.

fleet      who works, and what nobody serves        sqlite     the file: durability, space, integrity
work       leases, pauses, limits, schedules        server     PostgreSQL: durability, rights, sessions
reach      clocks, wake-ups, poolers                tables     PostgreSQL: vacuum and bloat
"""
