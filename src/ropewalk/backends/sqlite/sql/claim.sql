-- LIMIT ? + 0, here and elsewhere: newer libraries compile a statement anew for every value bound to a bare LIMIT ?
-- (45 instead of 7 µs for reading the ready sublanes).

-- name: note_started
-- A claim that arrives after a later one of the same worker notes nothing.
UPDATE worker SET started_upto = max(started_upto, :started_upto), unstarted = :unstarted, turn = :turn
WHERE id = :owner AND turn <= :turn AND (started_upto < :started_upto OR unstarted <> :unstarted)

-- name: unanswered_of
SELECT unanswered FROM worker WHERE id = ? AND turn <= ?

-- name: note_unanswered
UPDATE worker SET unanswered = ?, turn = ? WHERE id = ?

-- name: leases_of_tickets
-- Returns the jobs that a worker has leased under tickets of these ranges.
SELECT json_group_array(seq) FROM (
    SELECT seq FROM job
    WHERE stage = 2 AND owner = ? AND EXISTS (
        SELECT 1 FROM json_each(?) AS given
        WHERE job.ticket BETWEEN json_extract(given.value, '$[0]') AND json_extract(given.value, '$[1]')
    )
    ORDER BY seq
)

-- name: promote_due
UPDATE job SET stage = 1 WHERE seq IN (
    SELECT seq FROM job WHERE stage = 0 AND unmet = 0 AND run_at <= ? ORDER BY run_at LIMIT ? + 0
)

-- name: claim_snapshot
-- Returns which queues are paused and what becomes due next. `control` shows whether the limits that the caller
-- knows are still valid. With `look`, the answer contains the sublanes with ready jobs, too.
SELECT
    (SELECT epoch FROM meta),
    (SELECT control FROM meta),
    (SELECT json_group_array(json_array(tenant, name)) FROM queue WHERE paused = 1),
    (SELECT json_group_array(json_array(run_at, lane)) FROM (
        SELECT run_at, lane FROM job WHERE stage = 0 AND unmet = 0 ORDER BY run_at LIMIT :dues + 0
    )),
    (SELECT min(wake_at) FROM job WHERE wake_at IS NOT NULL AND stage = 0),
    iif(:look, (/* see ready_sublanes */), NULL)

-- name: ready_sublanes
-- Returns the sublanes with ready jobs, by one step through the index for each, however many jobs it has. The
-- sublanes of limit keys begin at 2^41; of those of one (tenant, queue, type), only the first is returned. SQLite
-- has no dead rows, so the time is always 0.
WITH RECURSIVE found (sublane) AS (
    SELECT min(sublane) FROM job WHERE stage = 1
    UNION ALL
    SELECT (
        SELECT min(sublane) FROM job
        WHERE stage = 1 AND sublane >= iif(found.sublane < 2199023255552, found.sublane + 1, (found.sublane >> 41) + 1 << 41)
    )
    FROM found
    WHERE found.sublane IS NOT NULL
)
SELECT json_array(json_group_array(sublane), 0) FROM found WHERE sublane IS NOT NULL

-- name: ready_key_sublanes
-- Returns the next sublanes of the limit keys of one (tenant, queue, type).
WITH RECURSIVE given (behind, before, most) AS (VALUES (?, ?, ?)),
found (sublane, number) AS (
    SELECT (
        SELECT sublane FROM job WHERE stage = 1 AND sublane > given.behind AND sublane < given.before ORDER BY sublane LIMIT 1
    ), 1
    FROM given
    UNION ALL
    SELECT
        (
            SELECT job.sublane FROM job
            WHERE stage = 1 AND job.sublane > found.sublane AND job.sublane < given.before ORDER BY job.sublane LIMIT 1
        ), number + 1
    FROM found
    CROSS JOIN given
    WHERE found.sublane IS NOT NULL AND number < given.most
)
SELECT json_group_array(sublane) FROM found WHERE sublane IS NOT NULL

-- name: ready_heads
-- Returns the first jobs of each of many sublanes, behind the rank that comes with it, and the sublane of each job.
SELECT /* see ready_columns */, json_group_array(sublane)
FROM json_each(?) AS wanted
CROSS JOIN job ON job.seq IN (
    SELECT head.seq FROM job AS head
    WHERE head.stage = 1 AND head.sublane = json_extract(wanted.value, '$[0]')
        AND (head.prio_key, head.time_key, head.seq) > (
            json_extract(wanted.value, '$[1]'), json_extract(wanted.value, '$[2]'), json_extract(wanted.value, '$[3]')
        )
        AND head.format <= ?
    ORDER BY head.prio_key, head.time_key, head.seq
    LIMIT ? + 0
)

-- name: ready_jobs
-- Returns the next jobs of one sublane, in order.
SELECT /* see ready_columns */
FROM (
    SELECT seq FROM job
    WHERE stage = 1 AND sublane = ? AND (prio_key, time_key, seq) > (?, ?, ?) AND format <= ?
    ORDER BY prio_key, time_key, seq
    LIMIT ? + 0
) AS found
CROSS JOIN job ON job.seq = found.seq

-- part: leased
-- Writes what domain.jobs.transition.claim changes in a record.
stage = 2, status = 'running', last_move = 'claim', rev = rev + 1, updated_at = {now}, attempt = attempt + 1,
fence = max(fence, {first_fence}) + 1, owner = {owner}, ticket = {ticket}, lease_expires_at = {expires_at},
start_rev = rev + 1, started_at = {now}

-- name: lease_jobs
WITH given (seq, ticket, expires_at) AS (VALUES (?, ?, ?) /* each row */),
lease (now, first_fence, owner) AS (VALUES (?, ?, ?))
UPDATE job SET
    /* see leased
    now = lease.now
    first_fence = lease.first_fence
    owner = lease.owner
    ticket = given.ticket
    expires_at = given.expires_at
    */
FROM given
CROSS JOIN lease
WHERE job.seq = given.seq AND job.stage = 1
-- range: up, up, same
UPDATE job SET
    /* see leased
    now = ?5
    first_fence = ?6
    owner = ?7
    ticket = ?2 + seq - ?1
    expires_at = ?3
    */
WHERE seq BETWEEN ?1 AND ?1 + ?4 - 1 AND stage = 1
