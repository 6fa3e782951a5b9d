-- compat: breaking
-- Times are µs since 1970 (…_at) or µs (…_us). Structured values are JSON text, NULL where they are empty.
-- Everything is made in the schema that leads the search path. Names compare by bytes ("C"), whatever the database does.

CREATE SEQUENCE job_seq CACHE 1;

-- One row a job, from submission to retention. `place` says where it stands: 0 waits for its time or for others,
-- 1 ready, 2 running, 3 finished. Every index that follows it is partial, so a job costs only the index of its place,
-- and a claim never meets what is finished or not due. When a lease ends is in no index: a renewal then stays within
-- its page (few jobs are running, looking through them is cheap).
CREATE TABLE job (
    seq bigint NOT NULL,
    lane bigint NOT NULL,
    prio_key bigint NOT NULL,
    time_key bigint NOT NULL,
    created_at bigint NOT NULL,
    run_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    max_attempts bigint,
    max_crashes bigint NOT NULL,
    attempt bigint NOT NULL DEFAULT 0,
    crashes bigint NOT NULL DEFAULT 0,
    fence bigint NOT NULL DEFAULT 0,
    ticket bigint NOT NULL DEFAULT 0,
    lease_expires_at bigint,
    started_at bigint,
    finished_at bigint,
    timeout_us bigint,
    lease_us bigint,
    deadline bigint,
    scope_id bigint,
    wake_at bigint,
    -- Jobs that were running when a worker died are given out one at a time: they stand apart from the rest of the lane.
    stream bigint NOT NULL GENERATED ALWAYS AS (2 * lane + (crashes > 0)::integer) STORED,
    flags integer NOT NULL,
    priority integer NOT NULL,
    run integer NOT NULL DEFAULT 1,
    rev integer NOT NULL DEFAULT 1,
    start_rev integer NOT NULL DEFAULT 0,
    unmet integer NOT NULL DEFAULT 0,
    depth integer NOT NULL DEFAULT 0,
    chain_index integer,
    format integer NOT NULL,
    place smallint NOT NULL,
    id text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL DEFAULT 'waiting',
    last_move text COLLATE "C" NOT NULL DEFAULT 'submit',
    owner text COLLATE "C",
    idempotency_key text COLLATE "C",
    correlation_id text COLLATE "C",
    workflow_id text COLLATE "C",
    workflow_type text COLLATE "C",
    group_id text COLLATE "C",
    parent_id text COLLATE "C",
    spawn_key text COLLATE "C",
    chain_id text COLLATE "C",
    gate text,
    awaits text,
    callback_url text,
    fairness text,
    limit_key text,
    trace text,
    backoff text,
    cancel text,
    progress text,
    tags text,
    on_failure text,
    origin text,
    error text,
    input bytea NOT NULL,
    checkpoint bytea,
    result bytea,
    PRIMARY KEY (seq)
) WITH (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1
);

CREATE UNIQUE INDEX job_by_id ON job (id, tenant);
CREATE INDEX job_ready ON job (stream, prio_key, time_key, seq) WHERE place = 1;
CREATE INDEX job_due ON job (run_at) WHERE place = 0 AND unmet = 0;
CREATE INDEX job_blocked ON job (lane) WHERE place = 0 AND unmet > 0;
CREATE INDEX job_wake ON job (wake_at) WHERE wake_at IS NOT NULL AND place = 0;
CREATE INDEX job_running ON job (tenant) WHERE place = 2;
CREATE INDEX job_finished ON job (status, type, finished_at) WHERE place = 3;
CREATE INDEX job_deadline ON job (deadline) WHERE deadline IS NOT NULL AND place < 2;
CREATE INDEX job_by_tenant ON job (tenant) WHERE tenant <> 'default';
CREATE INDEX job_by_workflow ON job (workflow_id) WHERE workflow_id IS NOT NULL;
CREATE INDEX job_by_correlation ON job (correlation_id) WHERE correlation_id IS NOT NULL;
CREATE INDEX job_by_group ON job (group_id) WHERE group_id IS NOT NULL;
CREATE UNIQUE INDEX job_by_parent ON job (parent_id, spawn_key, tenant) WHERE parent_id IS NOT NULL;
CREATE UNIQUE INDEX job_by_chain ON job (chain_id, chain_index, tenant) WHERE chain_id IS NOT NULL;

-- (tenant, queue, type) as one small number, the first column of job_ready. Never deleted: a number keeps its meaning.
CREATE TABLE lane (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    UNIQUE (tenant, queue, type)
);

CREATE TABLE queue (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    paused integer NOT NULL DEFAULT 0,
    weight integer NOT NULL DEFAULT 1,
    PRIMARY KEY (tenant, name)
);

-- An attempt that ended otherwise than in success; a success is columns of the job.
CREATE TABLE attempt (
    seq bigint NOT NULL,
    fence bigint NOT NULL,
    run integer NOT NULL,
    attempt bigint NOT NULL,
    move text NOT NULL,
    start_rev integer NOT NULL,
    rev integer NOT NULL,
    started_at bigint NOT NULL,
    ended_at bigint NOT NULL,
    owner text,
    next_run_at bigint,
    error text,
    PRIMARY KEY (seq, rev)
);

CREATE TABLE event (
    seq bigint NOT NULL,
    rev integer NOT NULL,
    kind text NOT NULL,
    at bigint NOT NULL,
    reason text,
    PRIMARY KEY (seq, rev)
);

CREATE TABLE key (
    tenant text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    job_id text COLLATE "C" NOT NULL,
    run integer NOT NULL,
    input_hash bytea NOT NULL,
    opened_at bigint NOT NULL,
    closed_at bigint,
    keep_us bigint NOT NULL,
    PRIMARY KEY (tenant, type, key)
);
CREATE INDEX key_window ON key ((opened_at + keep_us)) WHERE closed_at IS NOT NULL;

-- `started_upto` separates what a worker started from what it only held in its buffer.
CREATE TABLE worker (
    id text COLLATE "C" PRIMARY KEY,
    host text NOT NULL,
    pid bigint NOT NULL,
    types text NOT NULL,
    queues text,
    tenants text,
    concurrency bigint NOT NULL,
    started_at bigint NOT NULL,
    beat_at bigint NOT NULL,
    lease_us bigint NOT NULL,
    started_upto bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE once (
    tenant text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX once_expiry ON once (expires_at);

-- Up to which finish time the results of a type are already forgotten, so that no job is looked at twice.
CREATE TABLE forgotten (
    type text COLLATE "C" PRIMARY KEY,
    results_upto bigint NOT NULL
);

-- One row. `epoch` is in the high bits of every fence; `control` counts cancellations and pauses, so that a watcher sees
-- that there was one.
CREATE TABLE meta (
    only_row integer PRIMARY KEY CHECK (only_row = 1),
    epoch bigint NOT NULL,
    control bigint NOT NULL
) WITH (fillfactor = 50);
INSERT INTO meta VALUES (1, 0, 0);

-- What is open under a job, numbered like that job. A group is the scope of its root, and its value is kept there.
CREATE TABLE scope (
    id bigint PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    owner_id text COLLATE "C" NOT NULL,
    group_id text COLLATE "C" NOT NULL,
    root bigint NOT NULL,
    parent bigint,
    generation bigint NOT NULL,
    open bigint NOT NULL,
    members bigint NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    cancelled bigint NOT NULL,
    broken bigint NOT NULL,
    awaited_until bigint,
    closed_at bigint,
    report_orphan integer NOT NULL,
    cancel text,
    value text
) WITH (fillfactor = 50);
CREATE INDEX scope_by_group ON scope (group_id, tenant);

-- What is put together by the reader of a group's value (lists, merges), in the order it came.
CREATE TABLE contribution (
    scope bigint NOT NULL,
    position bigint NOT NULL,
    seq bigint NOT NULL,
    type text NOT NULL,
    value bytea,
    PRIMARY KEY (scope, position)
);

-- A dependency: `seq` waits for `parent` (a job's seq, and with it its tree or its chain) until `ending` says how that
-- ended. Those that wait are found by their parent without meeting the others.
CREATE TABLE edge (
    seq bigint NOT NULL,
    position integer NOT NULL,
    parent_kind text COLLATE "C" NOT NULL,
    parent bigint NOT NULL,
    parent_id text COLLATE "C" NOT NULL,
    ending text COLLATE "C",
    PRIMARY KEY (seq, position)
);
CREATE INDEX edge_by_parent ON edge (parent, parent_kind, ending);

-- What a transition left for later because there was too much of it: edges to resolve, changes of scopes.
CREATE TABLE cascade (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    item text NOT NULL
);

CREATE TABLE flow_limit (
    tenant text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    in_use bigint NOT NULL DEFAULT 0,
    concurrency bigint,
    tokens double precision,
    filled_at bigint,
    PRIMARY KEY (tenant, key)
);

CREATE TABLE step (
    seq bigint NOT NULL,
    position integer NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    until bigint,
    finished integer NOT NULL,
    value bytea,
    PRIMARY KEY (seq, position)
);

CREATE TABLE signal (
    seq bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    at bigint NOT NULL,
    value bytea,
    PRIMARY KEY (seq, name, position)
);

-- What has to be told outside, at least once: given out again at `next_at` unless it is deleted before.
CREATE TABLE outbox (
    id text COLLATE "C" PRIMARY KEY,
    kind text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    next_at bigint NOT NULL,
    payload text NOT NULL
);
CREATE INDEX outbox_due ON outbox (kind, next_at);

-- A statement sees what was committed before it began, also where it then waits for a lock. A function's statements each
-- see anew: the two below first wait, then look. (No semicolon ends a line within them: see statements_of.)

-- Whoever asks for a key is alone with it until the end of its transaction, whether the key exists or not. The row itself
-- is only kept from being deleted: the end of its job may close it meanwhile.
CREATE FUNCTION hold_key(of_tenant text, of_type text, of_key text) RETURNS SETOF key LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(
        jsonb_build_array(current_schema(), of_tenant, of_type, of_key)::text, 0
    )); RETURN QUERY
    SELECT * FROM key WHERE key.tenant = of_tenant AND key.type = of_type AND key.key = of_key FOR KEY SHARE; END
$$;

-- The root's scope is locked by whoever opens another one in its group.
CREATE FUNCTION hold_group(of_group text, of_tenant text) RETURNS SETOF bigint LANGUAGE plpgsql AS $$ BEGIN
    PERFORM 1 FROM scope
    WHERE scope.group_id = of_group AND scope.tenant = of_tenant AND scope.id = scope.root FOR UPDATE; RETURN QUERY
    SELECT scope.id FROM scope WHERE scope.group_id = of_group AND scope.tenant = of_tenant; END
$$;
