-- compat: breaking
-- Times are µs since 1970 (…_at) or µs (…_us). Structured values are JSON text, NULL where they are empty.
-- Everything is made in the schema that leads the search path. Names compare by bytes ("C"), whatever the database does.

CREATE SEQUENCE job_seq CACHE 1;
-- Text as JSON, and what is none as a string of it: for reading rows that were damaged, and nothing else.
CREATE FUNCTION readable_json (given text) RETURNS json LANGUAGE plpgsql IMMUTABLE AS
'BEGIN RETURN given::json; EXCEPTION WHEN data_exception THEN RETURN to_json(given); END';

-- A job is two rows. What was submitted is written once; almost nothing changes it later, and no claim or settlement
-- touches it.
CREATE TABLE submitted (
    seq bigint NOT NULL,
    max_crashes bigint NOT NULL,
    timeout_us bigint,
    lease_us bigint,
    scope_id bigint,
    depth integer NOT NULL DEFAULT 0,
    chain_index integer,
    id text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    idempotency_key text COLLATE "C",
    correlation_id text COLLATE "C",
    workflow_id text COLLATE "C",
    workflow_type text COLLATE "C",
    group_id text COLLATE "C",
    parent_id text COLLATE "C",
    spawn_key text COLLATE "C",
    chain_id text COLLATE "C",
    callback_url text,
    fairness text,
    limit_key text,
    trace text,
    backoff text,
    tags text,
    on_failure text,
    origin text,
    input bytea NOT NULL,
    PRIMARY KEY (seq)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

CREATE UNIQUE INDEX submitted_by_id ON submitted (id, tenant);
CREATE INDEX submitted_by_tenant ON submitted (tenant) WHERE tenant <> 'default';
CREATE INDEX submitted_by_workflow ON submitted (workflow_id) WHERE workflow_id IS NOT NULL;
CREATE INDEX submitted_by_correlation ON submitted (correlation_id) WHERE correlation_id IS NOT NULL;
CREATE INDEX submitted_by_group ON submitted (group_id) WHERE group_id IS NOT NULL;
CREATE UNIQUE INDEX submitted_by_parent ON submitted (parent_id, spawn_key, tenant) WHERE parent_id IS NOT NULL;
CREATE UNIQUE INDEX submitted_by_chain ON submitted (chain_id, chain_index, tenant) WHERE chain_id IS NOT NULL;

-- How a job stands, in a table for each stage: 0 waits for its time or for others, 1 ready, 2 running, 3 finished. A row
-- that gets another `stage` moves, and whoever waited for it begins again. So a claim never meets what is finished or not
-- due, and each stage keeps only the indexes it needs. When a lease ends is in none: a renewal then stays within its page
-- (few jobs are running, looking through them now and then is cheap).
CREATE TABLE job_by_stage (
    seq bigint NOT NULL,
    -- Twice the lane, and one more for jobs that were running when a worker died: how many of those are given is limited.
    sublane bigint NOT NULL,
    prio_key bigint NOT NULL,
    time_key bigint NOT NULL,
    created_at bigint NOT NULL,
    run_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    max_attempts bigint,
    attempt bigint NOT NULL DEFAULT 0,
    crashes bigint NOT NULL DEFAULT 0,
    fence bigint NOT NULL DEFAULT 0,
    ticket bigint NOT NULL DEFAULT 0,
    lease_expires_at bigint,
    started_at bigint,
    finished_at bigint,
    deadline bigint,
    wake_at bigint,
    flags integer NOT NULL,
    priority integer NOT NULL,
    run integer NOT NULL DEFAULT 1,
    rev integer NOT NULL DEFAULT 1,
    start_rev integer NOT NULL DEFAULT 0,
    unmet integer NOT NULL DEFAULT 0,
    format smallint NOT NULL,
    stage smallint NOT NULL,
    status text COLLATE "C" NOT NULL DEFAULT 'waiting',
    last_move text COLLATE "C" NOT NULL DEFAULT 'submit',
    owner text COLLATE "C",
    awaits text,
    gate text,
    cancel text,
    progress text,
    error text,
    checkpoint bytea,
    result bytea
) PARTITION BY LIST (stage);

CREATE TABLE waiting PARTITION OF job_by_stage FOR VALUES IN (0)
    WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 1);
CREATE UNIQUE INDEX waiting_by_seq ON waiting (seq);
CREATE INDEX waiting_due ON waiting (run_at) WHERE unmet = 0;
CREATE INDEX waiting_began ON waiting (updated_at)
    WHERE wake_at IS NOT NULL OR (unmet = 0 AND (flags & 65536) = 0);
CREATE INDEX waiting_by_sublane ON waiting (sublane);
CREATE INDEX waiting_wake ON waiting (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX waiting_deadline ON waiting (deadline) WHERE deadline IS NOT NULL;

CREATE TABLE ready PARTITION OF job_by_stage FOR VALUES IN (1)
    WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 1);
CREATE UNIQUE INDEX ready_by_seq ON ready (seq);
CREATE UNIQUE INDEX ready_in_order ON ready (sublane, prio_key, time_key, seq);
CREATE INDEX ready_deadline ON ready (deadline) WHERE deadline IS NOT NULL;

CREATE TABLE running PARTITION OF job_by_stage FOR VALUES IN (2) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 1
);
CREATE UNIQUE INDEX running_by_seq ON running (seq);
CREATE INDEX running_by_remote_owner ON running (owner) WHERE position('.' IN owner) > 0;

CREATE TABLE finished PARTITION OF job_by_stage FOR VALUES IN (3) WITH (
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05
);
CREATE UNIQUE INDEX finished_by_seq ON finished (seq);
CREATE INDEX finished_in_order ON finished (status, sublane, finished_at);
CREATE INDEX finished_shared_result ON finished (sublane, finished_at)
    WHERE status = 'completed' AND (flags & 769) <> 0 AND result IS NOT NULL;

-- Both rows as one, for those who only look.
CREATE VIEW job AS
SELECT
    job_by_stage.*, max_crashes, timeout_us, lease_us, scope_id, depth, chain_index, id, tenant, type, queue,
    idempotency_key, correlation_id, workflow_id, workflow_type, group_id, parent_id, spawn_key, chain_id, callback_url,
    fairness, limit_key, trace, backoff, tags, on_failure, origin, input
FROM job_by_stage
JOIN submitted ON submitted.seq = job_by_stage.seq;

-- (tenant, queue, type, limit key) as one number, half of `sublane`. Never deleted: a number keeps its meaning. The lanes of
-- keys, which may be very many, are numbered from 2^40 times the number of the lane without one on.
CREATE SEQUENCE lane_number CACHE 1;
CREATE SEQUENCE keyed_lane_number CACHE 1;
CREATE TABLE lane (
    id bigint PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    limit_key text COLLATE "C" NOT NULL,
    UNIQUE (tenant, queue, type, limit_key)
);

CREATE TABLE queue (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    paused integer NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, name)
);

-- An attempt that ended otherwise than in success; a success is columns of the job.
CREATE TABLE attempt (
    seq bigint NOT NULL, fence bigint NOT NULL, run integer NOT NULL, attempt bigint NOT NULL, move text NOT NULL,
    start_rev integer NOT NULL, rev integer NOT NULL, started_at bigint NOT NULL, ended_at bigint NOT NULL,
    owner text, next_run_at bigint, error text,
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

-- What a job logged: of each start in order of position, so that a line sent twice is kept once.
CREATE TABLE log (
    seq bigint NOT NULL, fence bigint NOT NULL, position integer NOT NULL, attempt bigint NOT NULL,
    at bigint NOT NULL, level integer NOT NULL, message text NOT NULL, fields text,
    PRIMARY KEY (seq, fence, position)
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

-- Jobs have started whose tickets are not above `started_upto`, in `unstarted` (they were overtaken in the buffer) or in the
-- ranges of `unanswered` (the answer to their claim was lost). `turn` is the number of the claim that told this last.
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
    started_upto bigint NOT NULL DEFAULT 0,
    unstarted text NOT NULL DEFAULT '[]',
    unanswered text NOT NULL DEFAULT '[]',
    turn bigint NOT NULL DEFAULT 0,
    draining integer NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE once_key (
    tenant text COLLATE "C", key text COLLATE "C", expires_at bigint NOT NULL,
    taken_by text COLLATE "C", -- the id of the caller who was first: repeated after a lost answer, it is first again
    PRIMARY KEY (tenant, key)
);
CREATE INDEX once_key_expiry ON once_key (expires_at);

-- Up to which finish time the results of a type are already forgotten, so that no job is looked at twice.
CREATE TABLE dropped_results (type text COLLATE "C" PRIMARY KEY, results_upto bigint NOT NULL);

-- What was counted where jobs move, by lane (of a limit key: the lane without it) and minute. A row is written once, and
-- taken away when it is folded into the sums.
CREATE TABLE counters (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL,
    lane bigint NOT NULL,
    counts text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 1);

-- The same of a minute, an hour, or for good (`span_us` 0). There may be several of the same: they add up.
CREATE TABLE counter_sums (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    span_us bigint NOT NULL,
    at bigint NOT NULL,
    lane bigint NOT NULL,
    counts text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX counter_sums_of_lane ON counter_sums (span_us, lane, at);
CREATE INDEX counter_sums_by_age ON counter_sums (span_us, at);

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
    id bigint PRIMARY KEY, tenant text COLLATE "C" NOT NULL, owner_id text COLLATE "C" NOT NULL,
    group_id text COLLATE "C" NOT NULL, root bigint NOT NULL, parent bigint, generation bigint NOT NULL,
    open bigint NOT NULL, members bigint NOT NULL, completed bigint NOT NULL, failed bigint NOT NULL,
    cancelled bigint NOT NULL, broken bigint NOT NULL, awaited_until bigint, closed_at bigint,
    report_orphan integer NOT NULL, cancel text, value text
) WITH (fillfactor = 50);
CREATE INDEX scope_by_group ON scope (group_id, tenant);

-- What is put together by the reader of a group's value (lists, merges), in the order it came.
CREATE TABLE contribution (
    scope bigint NOT NULL, position bigint NOT NULL, seq bigint NOT NULL, type text NOT NULL, value bytea,
    PRIMARY KEY (scope, position)
);

-- A dependency: `seq` waits for `parent` (a job's seq, and with it its tree or its chain) until `ending` says how that
-- ended. Those that wait are found by their parent without meeting the others.
CREATE TABLE edge (
    seq bigint NOT NULL, position integer NOT NULL, parent_kind text COLLATE "C" NOT NULL, parent bigint NOT NULL,
    parent_id text COLLATE "C" NOT NULL, ending text COLLATE "C",
    PRIMARY KEY (seq, position)
);
CREATE INDEX edge_by_parent ON edge (parent, parent_kind, ending);

-- What a transition left for later because there was too much of it: edges to resolve, changes of scopes.
CREATE TABLE deferred_work (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind text NOT NULL, item text NOT NULL);

-- What may run at once, and start in a span of time. What runs is counted, never kept: nothing has to be given back. Who
-- gives out jobs under a limit holds its row.
CREATE TABLE fleet_limit (
    tenant text COLLATE "C" NOT NULL, kind text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL,
    concurrency bigint, rate_count bigint, rate_window_us bigint, algorithm text, declared integer NOT NULL,
    PRIMARY KEY (tenant, kind, name)
);

-- What has started lately under a rate; of a family of keys, for each key. From `idle_at` on it makes no difference.
CREATE TABLE fleet_rate (
    tenant text COLLATE "C" NOT NULL, kind text COLLATE "C" NOT NULL, limit_name text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL, idle_at bigint NOT NULL, state text NOT NULL,
    PRIMARY KEY (tenant, kind, limit_name, name)
) WITH (fillfactor = 50);
CREATE INDEX fleet_rate_idle ON fleet_rate (idle_at);

-- What a tenant may have and do; '*' is for those that have no row. `running` is also a fleet_limit, which claims know.
CREATE TABLE quota (
    tenant text COLLATE "C" PRIMARY KEY,
    pending bigint,
    running bigint,
    rate_count bigint,
    rate_window_us bigint,
    algorithm text,
    payload_bytes bigint
);

-- A row for each tenant that ever submitted under a quota, held by whoever submits for it. `charge` is what came in under
-- its rate.
CREATE TABLE quota_charge (tenant text COLLATE "C" PRIMARY KEY, charge text) WITH (fillfactor = 50);

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

-- Whoever changes a schedule names the version it read; `next_fire` is NULL when it has ended.
CREATE TABLE schedule (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    generation bigint NOT NULL,
    next_fire bigint,
    last_fire bigint,
    paused integer NOT NULL,
    overridden integer NOT NULL,
    plan text NOT NULL,
    PRIMARY KEY (tenant, name)
);
CREATE INDEX schedule_due ON schedule (next_fire, tenant, name) WHERE next_fire IS NOT NULL;

-- What a service keeps beside the jobs. `number` says which was created first; `rev` is another number at every change.
CREATE TABLE document (
    kind text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL, number bigint NOT NULL, rev bigint NOT NULL,
    tenant text COLLATE "C" NOT NULL, topic text COLLATE "C" NOT NULL, created_at bigint NOT NULL,
    updated_at bigint NOT NULL, due_at bigint, expires_at bigint, body bytea NOT NULL,
    PRIMARY KEY (kind, id)
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX document_of_kind ON document (kind, number);
CREATE INDEX document_of_tenant ON document (kind, tenant, number);
CREATE INDEX document_of_topic ON document (kind, topic, number);
CREATE INDEX document_due ON document (kind, due_at, number) WHERE due_at IS NOT NULL;
CREATE INDEX document_ahead ON document (kind, updated_at) WHERE due_at IS NOT NULL;
CREATE INDEX document_expiry ON document (expires_at) WHERE expires_at IS NOT NULL;
