CREATE TABLE attempt (
    seq INTEGER NOT NULL, fence INTEGER NOT NULL, run INTEGER NOT NULL, attempt INTEGER NOT NULL, move TEXT NOT NULL,
    start_rev INTEGER NOT NULL, rev INTEGER NOT NULL, started_at INTEGER NOT NULL, ended_at INTEGER NOT NULL,
    owner TEXT, next_run_at INTEGER, error TEXT,
    PRIMARY KEY (seq, rev)
) WITHOUT ROWID;

CREATE TABLE contribution (
    scope INTEGER NOT NULL, position INTEGER NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, value BLOB,
    PRIMARY KEY (scope, position)
) WITHOUT ROWID;

CREATE TABLE counter_sums (
    id INTEGER PRIMARY KEY,
    span_us INTEGER NOT NULL,
    at INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    counts TEXT NOT NULL
);

CREATE INDEX counter_sums_by_age ON counter_sums (span_us, at);

CREATE INDEX counter_sums_of_lane ON counter_sums (span_us, lane, at);

CREATE TABLE counters (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    counts TEXT NOT NULL
);

CREATE TABLE deferred_work (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    item TEXT NOT NULL
);

CREATE TABLE document (
    kind TEXT NOT NULL, id TEXT NOT NULL, number INTEGER PRIMARY KEY, rev INTEGER NOT NULL, tenant TEXT NOT NULL,
    topic TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, due_at INTEGER, expires_at INTEGER,
    body BLOB NOT NULL
);

CREATE INDEX document_ahead ON document (kind, updated_at) WHERE due_at IS NOT NULL;

CREATE UNIQUE INDEX document_by_id ON document (kind, id);

CREATE INDEX document_due ON document (kind, due_at, number) WHERE due_at IS NOT NULL;

CREATE INDEX document_expiry ON document (expires_at) WHERE expires_at IS NOT NULL;

CREATE INDEX document_of_kind ON document (kind, number);

CREATE INDEX document_of_tenant ON document (kind, tenant, number);

CREATE INDEX document_of_topic ON document (kind, topic, number);

CREATE TABLE dropped_results (
    type TEXT PRIMARY KEY,
    results_upto INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE edge (
    seq INTEGER NOT NULL, position INTEGER NOT NULL, parent_kind TEXT NOT NULL, parent INTEGER NOT NULL,
    parent_id TEXT NOT NULL, ending TEXT,
    PRIMARY KEY (seq, position)
) WITHOUT ROWID;

CREATE INDEX edge_by_parent ON edge (parent, parent_kind, ending);

CREATE TABLE event (
    seq INTEGER NOT NULL,
    rev INTEGER NOT NULL,
    kind TEXT NOT NULL,
    at INTEGER NOT NULL,
    reason TEXT,
    PRIMARY KEY (seq, rev)
) WITHOUT ROWID;

CREATE TABLE fleet_limit (
    tenant TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, concurrency INTEGER, rate_count INTEGER,
    rate_window_us INTEGER, algorithm TEXT, declared INTEGER NOT NULL,
    PRIMARY KEY (tenant, kind, name)
) WITHOUT ROWID;

CREATE TABLE fleet_rate (
    tenant TEXT NOT NULL, kind TEXT NOT NULL, limit_name TEXT NOT NULL, name TEXT NOT NULL, idle_at INTEGER NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (tenant, kind, limit_name, name)
) WITHOUT ROWID;

CREATE INDEX fleet_rate_idle ON fleet_rate (idle_at);

CREATE TABLE job (
    seq INTEGER PRIMARY KEY,
    stage INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    type TEXT NOT NULL,
    queue TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'waiting',
    last_move TEXT NOT NULL DEFAULT 'submit',
    priority INTEGER NOT NULL,
    prio_key INTEGER NOT NULL,
    time_key INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    run INTEGER NOT NULL DEFAULT 1,
    rev INTEGER NOT NULL DEFAULT 1,
    attempt INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER,
    crashes INTEGER NOT NULL DEFAULT 0,
    max_crashes INTEGER NOT NULL,
    fence INTEGER NOT NULL DEFAULT 0,
    owner TEXT,
    ticket INTEGER NOT NULL DEFAULT 0,
    lease_expires_at INTEGER,
    start_rev INTEGER NOT NULL DEFAULT 0,
    started_at INTEGER,
    finished_at INTEGER,
    timeout_us INTEGER,
    lease_us INTEGER,
    deadline INTEGER,
    idempotency_key TEXT,
    correlation_id TEXT,
    workflow_id TEXT,
    workflow_type TEXT,
    group_id TEXT,
    parent_id TEXT,
    spawn_key TEXT,
    chain_id TEXT,
    chain_index INTEGER,
    scope_id INTEGER,
    unmet INTEGER NOT NULL DEFAULT 0,
    depth INTEGER NOT NULL DEFAULT 0,
    gate TEXT,
    awaits TEXT,
    wake_at INTEGER,
    callback_url TEXT,
    fairness TEXT,
    limit_key TEXT,
    trace TEXT,
    format INTEGER NOT NULL,
    backoff TEXT,
    cancel TEXT,
    progress TEXT,
    tags TEXT,
    on_failure TEXT,
    origin TEXT,
    error TEXT,
    input BLOB NOT NULL,
    checkpoint BLOB,
    result BLOB,
    sublane INTEGER GENERATED ALWAYS AS (2 * lane + (crashes > 0)) VIRTUAL
);

CREATE UNIQUE INDEX job_by_chain ON job (chain_id, chain_index, tenant) WHERE chain_id IS NOT NULL;

CREATE INDEX job_by_correlation ON job (correlation_id) WHERE correlation_id IS NOT NULL;

CREATE INDEX job_by_group ON job (group_id) WHERE group_id IS NOT NULL;

CREATE UNIQUE INDEX job_by_id ON job (id, tenant);

CREATE UNIQUE INDEX job_by_parent ON job (parent_id, spawn_key, tenant) WHERE parent_id IS NOT NULL;

CREATE INDEX job_by_tenant ON job (tenant) WHERE tenant <> 'default';

CREATE INDEX job_by_workflow ON job (workflow_id) WHERE workflow_id IS NOT NULL;

CREATE INDEX job_deadline ON job (deadline) WHERE deadline IS NOT NULL AND stage < 2;

CREATE INDEX job_due ON job (run_at) WHERE stage = 0 AND unmet = 0;

CREATE INDEX job_finished ON job (status, type, finished_at) WHERE stage = 3;

CREATE INDEX job_lease ON job (lease_expires_at) WHERE stage = 2;

CREATE INDEX job_ready ON job (sublane, prio_key, time_key) WHERE stage = 1;

CREATE INDEX job_shared_result ON job (type, finished_at)
    WHERE stage = 3 AND status = 'completed' AND flags & 769 <> 0 AND result IS NOT NULL;

CREATE INDEX job_wait_began ON job (updated_at)
    WHERE stage = 0 AND (wake_at IS NOT NULL OR (unmet = 0 AND flags & 65536 = 0));

CREATE INDEX job_waiting ON job (lane) WHERE stage = 0;

CREATE INDEX job_wake ON job (wake_at) WHERE wake_at IS NOT NULL AND stage = 0;

CREATE TABLE key (
    tenant TEXT NOT NULL,
    type TEXT NOT NULL,
    key TEXT NOT NULL,
    job_id TEXT NOT NULL,
    run INTEGER NOT NULL,
    input_hash BLOB NOT NULL,
    opened_at INTEGER NOT NULL,
    closed_at INTEGER,
    keep_us INTEGER NOT NULL,
    PRIMARY KEY (tenant, type, key)
) WITHOUT ROWID;

CREATE INDEX key_window ON key (opened_at + keep_us) WHERE closed_at IS NOT NULL;

CREATE TABLE lane (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    queue TEXT NOT NULL,
    type TEXT NOT NULL,
    limit_key TEXT NOT NULL,
    UNIQUE (tenant, queue, type, limit_key)
);

CREATE TABLE log (
    seq INTEGER NOT NULL, fence INTEGER NOT NULL, position INTEGER NOT NULL, attempt INTEGER NOT NULL,
    at INTEGER NOT NULL, level INTEGER NOT NULL, message TEXT NOT NULL, fields TEXT,
    PRIMARY KEY (seq, fence, position)
) WITHOUT ROWID;

CREATE TABLE meta (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    last_seq INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    control INTEGER NOT NULL
);

CREATE TABLE migration (version INTEGER PRIMARY KEY, name TEXT NOT NULL, compat TEXT NOT NULL);

CREATE TABLE once_key (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    taken_by TEXT,
    PRIMARY KEY (tenant, key)
) WITHOUT ROWID;

CREATE INDEX once_key_expiry ON once_key (expires_at);

CREATE TABLE outbox (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    next_at INTEGER NOT NULL,
    payload TEXT NOT NULL
) WITHOUT ROWID;

CREATE INDEX outbox_due ON outbox (kind, next_at);

CREATE TABLE queue (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    paused INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, name)
) WITHOUT ROWID;

CREATE TABLE quota (
    tenant TEXT PRIMARY KEY,
    pending INTEGER,
    running INTEGER,
    rate_count INTEGER,
    rate_window_us INTEGER,
    algorithm TEXT,
    payload_bytes INTEGER
) WITHOUT ROWID;

CREATE TABLE quota_charge (
    tenant TEXT PRIMARY KEY,
    charge TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE schedule (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    next_fire INTEGER,
    last_fire INTEGER,
    paused INTEGER NOT NULL,
    overridden INTEGER NOT NULL,
    plan TEXT NOT NULL,
    PRIMARY KEY (tenant, name)
) WITHOUT ROWID;

CREATE INDEX schedule_due ON schedule (next_fire, tenant, name) WHERE next_fire IS NOT NULL;

CREATE TABLE scope (
    id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, owner_id TEXT NOT NULL, group_id TEXT NOT NULL,
    root INTEGER NOT NULL, parent INTEGER, generation INTEGER NOT NULL, open INTEGER NOT NULL,
    members INTEGER NOT NULL, completed INTEGER NOT NULL, failed INTEGER NOT NULL, cancelled INTEGER NOT NULL,
    broken INTEGER NOT NULL, awaited_until INTEGER, closed_at INTEGER, report_orphan INTEGER NOT NULL, cancel TEXT,
    value TEXT
);

CREATE INDEX scope_by_group ON scope (group_id, tenant);

CREATE TABLE signal (
    seq INTEGER NOT NULL,
    name TEXT NOT NULL,
    position INTEGER NOT NULL,
    at INTEGER NOT NULL,
    value BLOB,
    PRIMARY KEY (seq, name, position)
) WITHOUT ROWID;

CREATE TABLE step (
    seq INTEGER NOT NULL,
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    until INTEGER,
    finished INTEGER NOT NULL,
    value BLOB,
    PRIMARY KEY (seq, position)
) WITHOUT ROWID;

CREATE TABLE worker (
    id TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    types TEXT NOT NULL,
    queues TEXT,
    tenants TEXT,
    concurrency INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    beat_at INTEGER NOT NULL,
    lease_us INTEGER NOT NULL,
    started_upto INTEGER NOT NULL DEFAULT 0,
    unstarted TEXT NOT NULL DEFAULT '[]',
    unanswered TEXT NOT NULL DEFAULT '[]',
    turn INTEGER NOT NULL DEFAULT 0,
    draining INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

