-- What connects jobs: edges, scopes, chains, steps, signals, and postponed work.

-- name: insert_edges
INSERT INTO edge (seq, position, parent_kind, parent, parent_id, ending)
SELECT * FROM unnest(%s::bigint[], %s::integer[], %s::text[], %s::bigint[], %s::text[], %s::text[])

-- name: waiting_edges
-- Returns any of the edges, up to the limit: sorting a hundred thousand of them to return a thousand would be
-- expensive.
WITH waiting AS MATERIALIZED (
    SELECT found.*
    FROM json_array_elements(%s) AS wanted
    CROSS JOIN LATERAL (
        SELECT * FROM edge
        WHERE parent = (wanted.value ->> 1)::bigint AND parent_kind = wanted.value ->> 0 AND ending IS NULL
        FOR UPDATE
    ) AS found
    LIMIT %s
)
SELECT coalesce(json_agg(json_build_object(
    'seq', seq, 'position', position, 'kind', parent_kind, 'parent', parent, 'parent_id', parent_id, 'ending', ending
)), '[]') FROM waiting

-- name: ended_edges
WITH ended AS MATERIALIZED (
    SELECT found.*
    FROM json_array_elements(%s) AS wanted
    CROSS JOIN LATERAL (
        SELECT * FROM edge
        WHERE parent = (wanted.value ->> 1)::bigint AND parent_kind = wanted.value ->> 0
            AND ending IN ('failed', 'cancelled')
        ORDER BY seq, position
        FOR UPDATE
    ) AS found
    ORDER BY found.seq, found.position
)
SELECT coalesce(json_agg(json_build_object(
    'seq', seq, 'position', position, 'kind', parent_kind, 'parent', parent, 'parent_id', parent_id, 'ending', ending
)), '[]') FROM ended

-- name: edges_of
SELECT coalesce(json_agg(json_build_object(
    'seq', seq, 'position', position, 'kind', parent_kind, 'parent', parent, 'parent_id', parent_id, 'ending', ending
) ORDER BY seq, position), '[]')
FROM edge
WHERE seq = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(%s)))

-- name: set_ending
WITH resolved (seq, position) AS (SELECT * FROM unnest(%s::bigint[], %s::integer[])), found AS MATERIALIZED (
    SELECT held.ctid
    FROM resolved
    CROSS JOIN LATERAL (
        SELECT edge.ctid FROM edge WHERE edge.seq = resolved.seq AND edge.position = resolved.position FOR UPDATE
    ) AS held
)
UPDATE edge SET ending = %s WHERE ctid = ANY (ARRAY(SELECT ctid FROM found))

-- name: tails_of_edges
-- Returns the job at the other end of each edge of one child: for a chain its last member, otherwise the parent
-- itself.
SELECT coalesce(json_agg(coalesce(
    CASE WHEN edge.parent_kind = 'chain' THEN (
        SELECT tail.seq FROM submitted AS tail
        WHERE tail.chain_id = edge.parent_id AND tail.tenant = child.tenant
        ORDER BY tail.chain_index DESC
        LIMIT 1
    ) END,
    edge.parent
) ORDER BY edge.position), '[]')
FROM submitted AS child
JOIN edge ON edge.seq = child.seq
WHERE child.seq = %s

-- name: load_scopes
WITH loaded AS MATERIALIZED (
    SELECT * FROM scope
    WHERE id = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(%s)))
    ORDER BY id
    FOR UPDATE
)
SELECT coalesce(json_agg(json_build_object(
    'id', id, 'tenant', tenant, 'owner_id', owner_id, 'group_id', group_id, 'root', root, 'parent', parent,
    'generation', generation, 'open', open, 'members', members, 'completed', completed, 'failed', failed,
    'cancelled', cancelled, 'broken', broken, 'awaited_until', awaited_until, 'closed_at', closed_at,
    'report_orphan', report_orphan <> 0, 'cancel', cancel::json, 'value', coalesce(value, '{}')::json
)), '[]') FROM loaded

-- name: save_scopes
INSERT INTO scope (
    id, tenant, owner_id, group_id, root, parent, generation, open, members, completed, failed, cancelled, broken,
    awaited_until, closed_at, report_orphan, cancel, value
)
SELECT * FROM unnest(
    %s::bigint[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[],
    %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::integer[],
    %s::text[], %s::text[]
)
ON CONFLICT (id) DO UPDATE SET
    generation = excluded.generation, open = excluded.open, members = excluded.members,
    completed = excluded.completed, failed = excluded.failed, cancelled = excluded.cancelled,
    broken = excluded.broken, awaited_until = excluded.awaited_until, closed_at = excluded.closed_at,
    cancel = excluded.cancel, value = excluded.value

-- name: scopes_of_group
-- A transaction that opens another scope in the group locks the scope of the root. The first statement waits for it,
-- and the second one then sees what it has written.
SELECT 1 FROM scope WHERE group_id = %s AND tenant = %s AND id = root FOR UPDATE
-- then
SELECT coalesce(json_agg(id), '[]') FROM scope WHERE group_id = %s AND tenant = %s

-- name: root_of_group
SELECT id FROM scope WHERE group_id = %s AND tenant = %s AND id = root

-- name: await_group
UPDATE scope SET awaited_until = greatest(awaited_until, %s) WHERE group_id = %s AND tenant = %s AND id = root

-- name: groups
-- Every job of a group but its root is a member of exactly one of its scopes.
SELECT coalesce(json_agg(json_build_object(
    'id', id, 'generation', generation, 'open', members - ended + (stage < 3)::integer,
    'completed', completed + (status = 'completed')::integer,
    'failed', failed + (status IN ('failed', 'dead_letter'))::integer,
    'cancelled', cancelled + (status = 'cancelled')::integer, 'closed_at', closed_at, 'cancelled_by', cancel::json,
    'value', coalesce(value, '{}')::json
)), '[]') FROM (
    SELECT
        root.group_id AS id, root.generation, root.closed_at, root.cancel, root.value, job.stage, job.status,
        sum(part.members) AS members, sum(part.completed + part.failed + part.cancelled) AS ended,
        sum(part.completed) AS completed, sum(part.failed) AS failed, sum(part.cancelled) AS cancelled
    FROM json_array_elements_text(%s) AS wanted
    JOIN scope AS root ON root.group_id = wanted.value AND root.tenant = %s AND root.id = root.root
    JOIN job ON job.seq = root.id
    JOIN scope AS part ON part.group_id = root.group_id AND part.tenant = root.tenant
    GROUP BY root.id, job.stage, job.status
) AS summed

-- name: last_positions
SELECT coalesce(json_object_agg(
    wanted.scope, coalesce((SELECT max(position) FROM contribution WHERE contribution.scope = wanted.scope), 0)
), '{}')
FROM (SELECT DISTINCT value::bigint AS scope FROM json_array_elements_text(%s)) AS wanted

-- name: insert_contributions
INSERT INTO contribution (scope, position, seq, type, value)
SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::text[], %s::bytea[])

-- name: contributions_of
SELECT coalesce(json_agg(json_build_array(position, type, length(value))), '[]'), string_agg(value, '') FROM (
    SELECT * FROM contribution WHERE scope = %s AND position > %s ORDER BY position LIMIT %s
) AS kept

-- name: seqs_of_spawns
WITH given AS (SELECT %s::json AS keys, %s::text AS parent_id, %s::text AS tenant)
SELECT coalesce(json_agg(job.seq), '[]')
FROM given
CROSS JOIN json_array_elements_text(given.keys) AS wanted
CROSS JOIN LATERAL (
    SELECT seq FROM submitted
    WHERE parent_id = given.parent_id AND spawn_key = wanted.value AND tenant = given.tenant
    OFFSET 0
) AS job

-- name: chain_of
-- The last member comes first. A limit of -1 means all.
SELECT coalesce(json_agg(seq), '[]') FROM (
    SELECT seq FROM submitted WHERE chain_id = %s AND tenant = %s ORDER BY chain_index DESC LIMIT nullif(%s::bigint, -1)
) AS members

-- name: expired_waits
WITH over AS MATERIALIZED (
    SELECT seq FROM waiting WHERE wake_at IS NOT NULL AND wake_at <= %s
    ORDER BY wake_at, seq
    LIMIT %s
    FOR UPDATE SKIP LOCKED
)
SELECT coalesce(json_agg(seq), '[]') FROM over

-- name: held_members
-- Returns those of these jobs that the owner holds and whose end changes only the counters of their scope.
WITH held AS MATERIALIZED (
    SELECT seq, fence FROM running
    WHERE seq = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(%s)))
        AND owner = %s AND (flags & ~(%s::integer)) = 0
    ORDER BY seq
    FOR UPDATE
)
SELECT coalesce(json_agg(json_build_array(seq, fence, scope_id)), '[]')
FROM held
CROSS JOIN LATERAL (SELECT scope_id FROM submitted WHERE submitted.seq = held.seq OFFSET 0) AS body
WHERE scope_id IS NOT NULL

-- name: insert_cascade
INSERT INTO deferred_work (kind, item) SELECT * FROM unnest(%s::text[], %s::text[])

-- name: oldest_cascade
-- Two callers at the same time must not get the same items, so the items that are returned are deleted.
WITH oldest AS MATERIALIZED (SELECT id FROM deferred_work ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED), taken AS (
    DELETE FROM deferred_work WHERE id = ANY (ARRAY(SELECT id FROM oldest)) RETURNING id, kind, item
)
SELECT coalesce(json_agg(json_build_array(kind, item) ORDER BY id), '[]') FROM taken

-- name: delete_cascade
-- Does nothing, because oldest_cascade has deleted the items.
SELECT %s::bigint

-- name: any_cascade
SELECT 1 FROM deferred_work LIMIT 1

-- name: is_held
SELECT 1 FROM running WHERE seq = %s AND fence = %s AND owner = %s FOR NO KEY UPDATE

-- name: add_flag
UPDATE running SET flags = flags | %s WHERE seq = %s AND fence = %s AND owner = %s

-- name: steps_of
SELECT
    coalesce(json_agg(json_build_array(position, name, kind, until, finished <> 0, length(value))), '[]'),
    string_agg(value, '')
FROM (SELECT * FROM step WHERE seq = %s AND position > %s ORDER BY position LIMIT %s) AS page

-- name: step_names
SELECT coalesce(json_agg(json_build_array(position, name) ORDER BY position), '[]') FROM step WHERE seq = %s

-- name: put_step
-- A finished step stays as it is.
INSERT INTO step (seq, position, name, kind, until, finished, value) VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (seq, position) DO UPDATE SET
    name = excluded.name, kind = excluded.kind, until = excluded.until, finished = excluded.finished,
    value = excluded.value
WHERE step.finished = 0

-- name: put_new_step
-- A wait that goes on keeps its first end, unless the clock was set back since.
INSERT INTO step (seq, position, name, kind, until, finished, value) VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (seq, position) DO UPDATE SET until = excluded.until WHERE step.finished = 0 AND excluded.until < step.until

-- name: put_signal
INSERT INTO signal (seq, name, position, at, value)
SELECT %s, %s, coalesce(max(position), 0) + 1, %s, %s FROM signal WHERE seq = %s AND name = %s

-- name: oldest_signal
SELECT position, value FROM signal WHERE seq = %s AND name = %s ORDER BY position LIMIT 1

-- name: delete_signal
DELETE FROM signal WHERE seq = %s AND name = %s AND position = %s

-- name: put_orphan
-- Records the group if its client asked for that, or if a worker takes the orphan groups of every client.
INSERT INTO outbox (id, kind, created_at, next_at, payload)
SELECT %s, 'orphan', %s, %s, %s
WHERE %s <> 0 OR EXISTS (SELECT 1 FROM outbox WHERE kind = 'orphans_taken' AND next_at > %s)
ON CONFLICT (id) DO NOTHING

-- name: record_orphans
INSERT INTO outbox (id, kind, created_at, next_at, payload) VALUES ('orphans_taken', 'orphans_taken', %s, %s, '{}')
ON CONFLICT (id) DO UPDATE SET next_at = excluded.next_at WHERE outbox.next_at < %s

-- name: orphans_are_taken
SELECT 1 FROM outbox WHERE kind = 'orphans_taken' AND next_at > %s

-- name: due_orphans
WITH due AS MATERIALIZED (
    -- A group that is hidden for longer than possible was taken or closed before the clock was set back.
    SELECT payload FROM outbox WHERE kind = 'orphan' AND (next_at <= %s OR next_at > %s)
    ORDER BY created_at, id
    LIMIT %s
    FOR UPDATE SKIP LOCKED
)
SELECT coalesce(json_agg(payload::json), '[]') FROM due

-- name: hide_orphans
UPDATE outbox SET next_at = %s WHERE id = ANY (ARRAY(SELECT value FROM json_array_elements_text(%s)))

-- name: delete_orphan
DELETE FROM outbox WHERE id = %s AND kind = 'orphan'

-- name: in_use
-- Returns those of these jobs that are still needed: something that was queued under the job is open, or a job that
-- has not ended and is not among these depends on it, or on the chain of which it is a later member.
WITH wanted AS MATERIALIZED (SELECT value::bigint AS seq FROM json_array_elements_text(%s))
SELECT coalesce(json_agg(job.seq), '[]')
FROM wanted
CROSS JOIN LATERAL (
    SELECT submitted.seq, chain_index, scope_id FROM submitted WHERE submitted.seq = wanted.seq OFFSET 0
) AS job
WHERE EXISTS (SELECT 1 FROM scope WHERE scope.id = job.seq AND closed_at IS NULL) OR EXISTS (
    SELECT 1
    FROM edge
    CROSS JOIN LATERAL (SELECT seq FROM job_by_stage WHERE job_by_stage.seq = edge.seq AND stage < 3 OFFSET 0) AS child
    WHERE edge.parent = job.seq AND child.seq NOT IN (SELECT seq FROM wanted)
) OR (job.chain_index > 0 AND EXISTS (
    SELECT 1
    FROM edge
    CROSS JOIN LATERAL (SELECT seq FROM job_by_stage WHERE job_by_stage.seq = edge.seq AND stage < 3 OFFSET 0) AS child
    WHERE edge.parent = job.scope_id AND edge.parent_kind = 'chain' AND child.seq NOT IN (SELECT seq FROM wanted)
))

-- name: delete_edges
DELETE FROM edge WHERE seq = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(%s)))

-- name: delete_scopes
DELETE FROM scope WHERE id = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(%s)))

-- name: delete_contributions
DELETE FROM contribution WHERE scope = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(%s)))

-- name: delete_steps
DELETE FROM step WHERE seq = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(%s)))

-- name: delete_steps_from
DELETE FROM step WHERE seq = %s AND position >= %s

-- name: delete_signals
DELETE FROM signal WHERE seq = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(%s)))
