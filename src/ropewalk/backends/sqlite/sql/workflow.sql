-- What connects jobs: edges, scopes, chains, steps, signals, and postponed work.

-- name: insert_edges
INSERT INTO edge (seq, position, parent_kind, parent, parent_id, ending) VALUES (?, ?, ?, ?, ?, ?) /* each row */

-- name: waiting_edges
SELECT json_group_array(json_object(
    'seq', seq, 'position', position, 'kind', parent_kind, 'parent', parent, 'parent_id', parent_id, 'ending', ending
)) FROM (
    SELECT edge.*
    FROM json_each(?) AS wanted
    CROSS JOIN edge ON edge.parent = wanted.value ->> 1 AND edge.parent_kind = wanted.value ->> 0
    WHERE edge.ending IS NULL
    LIMIT ? + 0
)

-- name: ended_edges
SELECT json_group_array(json_object(
    'seq', seq, 'position', position, 'kind', parent_kind, 'parent', edge.parent, 'parent_id', parent_id,
    'ending', ending
))
FROM json_each(?) AS wanted
CROSS JOIN edge ON edge.parent = wanted.value ->> 1 AND edge.parent_kind = wanted.value ->> 0
WHERE edge.ending IN ('failed', 'cancelled')

-- name: edges_of
SELECT json_group_array(json_object(
    'seq', seq, 'position', position, 'kind', parent_kind, 'parent', parent, 'parent_id', parent_id, 'ending', ending
)) FROM (
    SELECT edge.*
    FROM json_each(?) AS wanted
    CROSS JOIN edge ON edge.seq = wanted.value
    ORDER BY edge.seq, edge.position
)

-- name: set_ending
WITH resolved (seq, position) AS (VALUES (?, ?) /* each row */)
UPDATE edge SET ending = ? FROM resolved WHERE edge.seq = resolved.seq AND edge.position = resolved.position

-- name: tails_of_edges
-- Returns the job at the other end of each edge of one child: for a chain its last member, otherwise the parent
-- itself.
SELECT json_group_array(coalesce(
    iif(edge.parent_kind = 'chain', (
        SELECT tail.seq FROM job AS tail
        WHERE tail.chain_id = edge.parent_id AND tail.tenant = child.tenant
        ORDER BY tail.chain_index DESC
        LIMIT 1
    ), NULL),
    edge.parent
))
FROM job AS child
CROSS JOIN (SELECT * FROM edge WHERE seq = ?1 ORDER BY position) AS edge
WHERE child.seq = ?1

-- name: load_scopes
SELECT json_group_array(json_object(
    'id', scope.id, 'tenant', tenant, 'owner_id', owner_id, 'group_id', group_id, 'root', scope.root,
    'parent', scope.parent, 'generation', generation, 'open', open, 'members', members, 'completed', completed, 'failed', failed,
    'cancelled', cancelled, 'broken', broken, 'awaited_until', awaited_until, 'closed_at', closed_at,
    'report_orphan', json(iif(report_orphan, 'true', 'false')), 'cancel', json(cancel),
    'value', json(coalesce(scope.value, '{}'))
))
FROM json_each(?) AS wanted
CROSS JOIN scope ON scope.id = wanted.value

-- name: save_scopes
INSERT INTO scope (
    id, tenant, owner_id, group_id, root, parent, generation, open, members, completed, failed, cancelled, broken,
    awaited_until, closed_at, report_orphan, cancel, value
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) /* each row */
ON CONFLICT (id) DO UPDATE SET
    generation = excluded.generation, open = excluded.open, members = excluded.members,
    completed = excluded.completed, failed = excluded.failed, cancelled = excluded.cancelled,
    broken = excluded.broken, awaited_until = excluded.awaited_until, closed_at = excluded.closed_at,
    cancel = excluded.cancel, value = excluded.value

-- name: scopes_of_group
SELECT json_group_array(id) FROM scope WHERE group_id = ? AND tenant = ?

-- name: root_of_group
SELECT id FROM scope WHERE group_id = ? AND tenant = ? AND id = root

-- name: await_group
UPDATE scope SET awaited_until = max(coalesce(awaited_until, 0), ?) WHERE group_id = ? AND tenant = ? AND id = root

-- name: groups
-- Every job of a group but its root is a member of exactly one of its scopes.
SELECT json_group_array(json_object(
    'id', id, 'generation', generation, 'open', members - ended + (stage < 3),
    'completed', completed + (status = 'completed'), 'failed', failed + (status IN ('failed', 'dead_letter')),
    'cancelled', cancelled + (status = 'cancelled'), 'closed_at', closed_at, 'cancelled_by', json(cancel),
    'value', json(coalesce(value, '{}'))
)) FROM (
    SELECT
        root.group_id AS id, root.generation, root.closed_at, root.cancel, root.value, job.stage, job.status,
        sum(part.members) AS members, sum(part.completed + part.failed + part.cancelled) AS ended,
        sum(part.completed) AS completed, sum(part.failed) AS failed, sum(part.cancelled) AS cancelled
    FROM json_each(?) AS wanted
    CROSS JOIN scope AS root ON root.group_id = wanted.value AND root.tenant = ? AND root.id = root.root
    CROSS JOIN job ON job.seq = root.id
    CROSS JOIN scope AS part ON part.group_id = root.group_id AND part.tenant = root.tenant
    GROUP BY root.id
)

-- name: last_positions
SELECT json_group_object(
    wanted.value, coalesce((SELECT max(position) FROM contribution WHERE contribution.scope = wanted.value), 0)
) FROM (SELECT DISTINCT value FROM json_each(?)) AS wanted

-- name: insert_contributions
INSERT INTO contribution (scope, position, seq, type, value) VALUES (?, ?, ?, ?, ?) /* each row */

-- name: contributions_of
SELECT json_group_array(json_array(position, type, length(value))), CAST(group_concat(value, '') AS BLOB) FROM (
    SELECT * FROM contribution WHERE scope = ? AND position > ? ORDER BY position LIMIT ? + 0
)

-- name: seqs_of_spawns
SELECT json_group_array(job.seq)
FROM json_each(?) AS wanted
CROSS JOIN job ON job.parent_id = ? AND job.spawn_key = wanted.value AND job.tenant = ?

-- name: chain_of
-- The last member comes first. A limit of -1 means all.
SELECT json_group_array(seq) FROM (
    SELECT seq FROM job WHERE chain_id = ? AND tenant = ? ORDER BY chain_index DESC LIMIT ? + 0
)

-- name: expired_waits
SELECT json_group_array(seq) FROM (
    SELECT seq FROM job
    WHERE wake_at IS NOT NULL AND wake_at <= ? AND stage = 0
    ORDER BY wake_at, seq
    LIMIT ? + 0
)

-- name: held_members
-- Returns those of these jobs that the owner holds and whose end changes only the counters of their scope.
SELECT json_group_array(json_array(job.seq, fence, scope_id))
FROM json_each(?) AS wanted
CROSS JOIN job ON job.seq = wanted.value
WHERE stage = 2 AND owner = ? AND scope_id IS NOT NULL AND flags & ~? = 0

-- name: insert_cascade
INSERT INTO deferred_work (kind, item) VALUES (?, ?) /* each row */

-- name: oldest_cascade
SELECT json_group_array(json_array(kind, item)) FROM (SELECT kind, item FROM deferred_work ORDER BY id LIMIT ? + 0)

-- name: delete_cascade
DELETE FROM deferred_work WHERE id IN (SELECT id FROM deferred_work ORDER BY id LIMIT ? + 0)

-- name: any_cascade
SELECT 1 FROM deferred_work LIMIT 1

-- name: is_held
SELECT 1 FROM job WHERE seq = ? AND fence = ? AND owner = ? AND stage = 2

-- name: add_flag
UPDATE job SET flags = flags | ? WHERE seq = ? AND fence = ? AND owner = ? AND stage = 2

-- name: steps_of
SELECT
    json_group_array(json_array(position, name, kind, until, json(iif(finished, 'true', 'false')), length(value))),
    CAST(group_concat(value, '') AS BLOB)
FROM (SELECT * FROM step WHERE seq = ? AND position > ? ORDER BY position LIMIT ? + 0)

-- name: step_names
SELECT json_group_array(json_array(position, name)) FROM (SELECT position, name FROM step WHERE seq = ? ORDER BY position)

-- name: put_step
-- A finished step stays as it is.
INSERT INTO step (seq, position, name, kind, until, finished, value) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (seq, position) DO UPDATE SET
    name = excluded.name, kind = excluded.kind, until = excluded.until, finished = excluded.finished,
    value = excluded.value
WHERE step.finished = 0

-- name: put_new_step
-- A wait that goes on keeps its first end, unless the clock was set back since.
INSERT INTO step (seq, position, name, kind, until, finished, value) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (seq, position) DO UPDATE SET until = excluded.until WHERE step.finished = 0 AND excluded.until < step.until

-- name: put_signal
INSERT INTO signal (seq, name, position, at, value)
SELECT ?, ?, coalesce(max(position), 0) + 1, ?, ? FROM signal WHERE seq = ? AND name = ?

-- name: oldest_signal
SELECT position, value FROM signal WHERE seq = ? AND name = ? ORDER BY position LIMIT 1

-- name: delete_signal
DELETE FROM signal WHERE seq = ? AND name = ? AND position = ?

-- name: put_orphan
-- Records the group if its client asked for that, or if a worker takes the orphan groups of every client.
INSERT OR IGNORE INTO outbox (id, kind, created_at, next_at, payload)
SELECT ?, 'orphan', ?, ?, ?
WHERE ? OR EXISTS (SELECT 1 FROM outbox WHERE kind = 'orphans_taken' AND next_at > ?)

-- name: record_orphans
INSERT INTO outbox (id, kind, created_at, next_at, payload) VALUES ('orphans_taken', 'orphans_taken', ?, ?, '{}')
ON CONFLICT (id) DO UPDATE SET next_at = excluded.next_at WHERE outbox.next_at < ?

-- name: orphans_are_taken
SELECT 1 FROM outbox WHERE kind = 'orphans_taken' AND next_at > ?

-- name: due_orphans
SELECT json_group_array(json(payload)) FROM (
    -- A group that is hidden for longer than possible was taken or closed before the clock was set back.
    SELECT payload FROM outbox
    WHERE kind = 'orphan' AND (next_at <= ? OR next_at > ?) ORDER BY created_at, id LIMIT ? + 0
)

-- name: hide_orphans
UPDATE outbox SET next_at = ? WHERE id IN (SELECT value FROM json_each(?))

-- name: delete_orphan
DELETE FROM outbox WHERE id = ? AND kind = 'orphan'

-- name: in_use
-- Returns those of these jobs that are still needed: something that was queued under the job is open, or a job that
-- has not ended and is not among these depends on it, or on the chain of which it is a later member.
SELECT json_group_array(job.seq)
FROM json_each(?1) AS wanted
CROSS JOIN job ON job.seq = wanted.value
WHERE EXISTS (SELECT 1 FROM scope WHERE scope.id = job.seq AND closed_at IS NULL) OR EXISTS (
    SELECT 1
    FROM edge
    CROSS JOIN job AS child ON child.seq = edge.seq
    WHERE edge.parent = job.seq AND child.stage < 3 AND child.seq NOT IN (SELECT value FROM json_each(?1))
) OR (job.chain_index > 0 AND EXISTS (
    SELECT 1
    FROM edge
    CROSS JOIN job AS child ON child.seq = edge.seq
    WHERE edge.parent = job.scope_id AND edge.parent_kind = 'chain' AND child.stage < 3
        AND child.seq NOT IN (SELECT value FROM json_each(?1))
))

-- name: delete_edges
DELETE FROM edge WHERE seq IN (SELECT value FROM json_each(?))

-- name: delete_scopes
DELETE FROM scope WHERE id IN (SELECT value FROM json_each(?))

-- name: delete_contributions
DELETE FROM contribution WHERE scope IN (SELECT value FROM json_each(?))

-- name: delete_steps
DELETE FROM step WHERE seq IN (SELECT value FROM json_each(?))

-- name: delete_steps_from
DELETE FROM step WHERE seq = ? AND position >= ?

-- name: delete_signals
DELETE FROM signal WHERE seq IN (SELECT value FROM json_each(?))
