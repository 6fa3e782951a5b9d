"""The manifest of a store's SQL: one field a block in its `sql/*.sql`, checked when it is loaded.

Every SQL store has its own statements under the same names, with the same parameters and answers.
"""

from __future__ import annotations

from msgspec import Struct


class Statements(Struct, frozen=True, kw_only=True):
    # records.sql
    """The SQL of a store: one field for each block. A field with a default may be missing in a store."""

    load_jobs: str
    load_shared: str = ""
    """This loads jobs that are only read: other transactions may still change what does not end them, such as a
    lease."""
    load_to_note: str = ""
    """This loads jobs that are changed but not ended, even while another transaction reads them."""
    note_dependants: str
    note_live_dependants: str = ""
    """This marks parents before a user's transaction begins, which would otherwise lock their leases until its end."""
    one_job: str
    one_column: str
    mend_fence: str
    save_jobs: str
    insert_attempts: str
    insert_events: str
    seqs_of_ids: str
    # submit.sql
    take_numbers: str
    next_seq: str = ""
    """This is an expression for the next number, if an INSERT can take it itself."""
    insert_lanes: str
    lane_ids: str
    lane_names: str
    seq_of_id: str
    is_paused: str
    epoch: str
    # keys.sql
    find_key: str
    find_key_if_free: str = ""
    """This finds a key without waiting, if another transaction can lock a key for long."""
    put_keys: str
    close_keys: str
    prune_keys: str
    # claim.sql
    note_started: str = ""
    """This records the started jobs, if `claim_snapshot` cannot do it itself."""
    unanswered_of: str
    note_unanswered: str
    leases_of_tickets: str
    promote_due: str
    claim_single_sublane: str = ""
    """This is a whole claim of one sublane, for a store where every statement costs a round trip."""
    claim_snapshot: str
    ready_sublanes: str
    ready_key_sublanes: str
    ready_heads: str
    ready_jobs: str
    lease_jobs: str
    # limits.sql
    all_limits: str
    put_limit: str
    remove_limit: str
    lock_limits: str
    running_lanes: str
    rates_of: str
    put_rates: str
    forget_rates: str
    prune_rates: str
    # counters.sql
    insert_counters: str
    oldest_counters: str
    delete_counters: str
    sums_to_fold: str
    delete_sums: str
    insert_sums: str
    forget_sums: str
    finished_counts_of: str
    lanes_counted: str
    lanes_of_types: str
    counters_of: str
    not_ready: str
    # quotas.sql
    all_quotas: str
    put_quota: str
    remove_quota: str
    lock_quotas: str
    waiting_of: str
    quota_charges: str
    charge_quotas: str
    # hold.sql
    complete_plain: str
    complete_in_one_statement: str = ""
    """This is a whole settlement of such completions, for a store where every statement costs a round trip."""
    leases_to_renew: str
    standing_of: str
    insert_lines: str
    trim_lines: str
    renew_leases: str
    write_note: str
    register_worker: str
    beat: str
    drain_worker: str
    unregister_worker: str
    bump_control: str
    # upkeep.sql
    expired_leases: str
    earliest_expiry: str
    started_tickets: str
    past_deadline: str
    waits_ahead: str
    workers_ahead: str
    bring_leases_nearer: str
    bring_beat_nearer: str
    types: str
    past_retention: str
    delete_keys_of: str
    delete_attempts: str
    delete_events: str
    delete_lines: str
    delete_jobs: str
    results_upto: str
    old_results: str
    old_shared_results: str
    forget_results: str
    note_forgotten: str
    prune_once: str
    prune_workers: str
    take_once: str
    is_taken_once: str
    set_paused: str
    # read.sql
    attempts_of: str
    events_of: str
    workers: str
    held: str
    live_counts: str
    backlog: str
    lines_of: str
    paused_queues: str
    ahead_of: str
    change_marks: str
    search_page: str
    search_limit: str
    search_ended_by_type: str = ""
    """The condition for finished jobs with which they are found by their type, if an index can do that."""
    search_one_of: str
    search_tag: str
    search_error: str
    search_completed: str
    # health.sql
    all_paused: str
    leases_over: str
    newer_records: str
    dead_letters: str
    jobs_set_aside: str
    # workflow.sql
    insert_edges: str
    waiting_edges: str
    ended_edges: str
    edges_of: str
    set_ending: str
    tails_of_edges: str
    load_scopes: str
    save_scopes: str
    scopes_of_group: str
    root_of_group: str
    await_group: str
    groups: str
    last_positions: str
    insert_contributions: str
    contributions_of: str
    seqs_of_spawns: str
    chain_of: str
    expired_waits: str
    held_members: str
    insert_cascade: str
    oldest_cascade: str
    delete_cascade: str
    any_cascade: str
    is_held: str
    add_flag: str
    steps_of: str
    step_names: str
    put_step: str
    put_new_step: str
    put_signal: str
    oldest_signal: str
    delete_signal: str
    put_orphan: str
    record_orphans: str
    orphans_are_taken: str
    due_orphans: str
    hide_orphans: str
    delete_orphan: str
    in_use: str
    delete_edges: str
    delete_scopes: str
    delete_contributions: str
    delete_steps: str
    delete_steps_from: str
    delete_signals: str
    # schedule.sql
    insert_schedule: str
    update_schedule: str
    delete_schedule: str
    schedules_named: str
    schedules_of: str
    due_schedules: str
    next_schedule: str
    all_plans: str
    # documents.sql
    lock_documents: str
    insert_documents: str
    update_documents: str
    documents_named: str
    load_documents: str
    documents_of_kind: str
    newest_documents_of_kind: str
    documents_of_tenant: str
    newest_documents_of_tenant: str
    documents_of_topic: str
    newest_documents_of_topic: str
    count_documents_of_kind: str
    count_documents_of_tenant: str
    count_documents_of_topic: str
    bring_documents_nearer: str
    due_documents: str
    hide_documents: str
    delete_documents: str
    prune_documents: str
