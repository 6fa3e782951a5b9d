"""The manifest of this store's SQL: one field a block in `sql/*.sql`, checked when this module is imported."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ropewalk.backends._sql.blocks import load


class Statements(Struct, frozen=True, kw_only=True):
    # records.sql
    load_jobs: str
    save_jobs: str
    insert_attempts: str
    insert_events: str
    seqs_of_ids: str
    # submit.sql
    take_seqs: str
    insert_lane: str
    lane_id: str
    all_lanes: str
    seq_of_id: str
    seq_of_spawn: str
    is_paused: str
    epoch: str
    lease_new_job: str
    # keys.sql
    find_key: str
    put_key: str
    close_key: str
    prune_keys: str
    # claim.sql
    note_started: str
    promote_due: str
    survey: str
    ready_keys: str
    lease_jobs: str
    # hold.sql
    held_leases: str
    complete_plain: str
    renew_leases: str
    write_note: str
    enlist_worker: str
    beat: str
    dismiss_worker: str
    bump_control: str
    # upkeep.sql
    leases_run_out: str
    started_upto: str
    past_deadline: str
    types: str
    past_retention: str
    delete_keys_of: str
    delete_attempts: str
    delete_events: str
    delete_jobs: str
    results_upto: str
    old_results: str
    forget_results: str
    note_forgotten: str
    prune_once: str
    prune_workers: str
    take_once: str
    set_paused: str
    space: str
    # read.sql
    attempts_of: str
    events_of: str
    workers: str
    live_counts: str
    paused_queues: str
    ahead_of: str
    marks: str


SQL: Final = load("ropewalk.backends.sqlite", Statements)
