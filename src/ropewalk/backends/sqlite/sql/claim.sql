-- LIMIT ? + 0, here and elsewhere: newer libraries compile a statement anew for every value bound to a bare LIMIT ?
-- (45 instead of 7 µs for the survey).

-- name: note_started
-- A claim that arrives after a later one of the same worker notes nothing.
UPDATE worker SET started_upto = max(started_upto, :started_upto), unstarted = :unstarted, turn = :turn
WHERE id = :owner AND turn <= :turn AND (started_upto < :started_upto OR unstarted <> :unstarted)

-- name: unanswered_of
SELECT unanswered FROM worker WHERE id = ? AND turn <= ?

-- name: note_unanswered
UPDATE worker SET unanswered = ?, turn = ? WHERE id = ?

-- name: leases_of_tickets
-- What a worker holds under tickets of these ranges.
SELECT json_group_array(seq) FROM (
    SELECT seq FROM job
    WHERE place = 2 AND owner = ? AND EXISTS (
        SELECT 1 FROM json_each(?) AS given
        WHERE job.ticket BETWEEN json_extract(given.value, '$[0]') AND json_extract(given.value, '$[1]')
    )
    ORDER BY seq
)

-- name: promote_due
UPDATE job SET place = 1 WHERE seq IN (
    SELECT seq FROM job WHERE place = 0 AND unmet = 0 AND run_at <= ? ORDER BY run_at LIMIT ? + 0
)

-- name: claim_snapshot
-- What is paused, and what comes due next; `control` tells whether the limits known are still those that hold. With
-- `look` also which streams have ready jobs.
SELECT
    (SELECT epoch FROM meta),
    (SELECT control FROM meta),
    (SELECT json_group_array(json_array(tenant, name)) FROM queue WHERE paused = 1),
    (SELECT json_group_array(json_array(run_at, lane)) FROM (
        SELECT run_at, lane FROM job WHERE place = 0 AND unmet = 0 ORDER BY run_at LIMIT :dues + 0
    )),
    (SELECT min(wake_at) FROM job WHERE wake_at IS NOT NULL AND place = 0),
    iif(:look, (/* see survey */), NULL)

-- name: survey
-- Which streams have ready jobs: one step through the index each, however many jobs they hold. Those of limit keys begin
-- at 2^41: of each (tenant, queue, type) only the first. Nothing dead is ever in the way, so it takes no
-- time worth telling.
WITH RECURSIVE found (stream) AS (
    SELECT min(stream) FROM job WHERE place = 1
    UNION ALL
    SELECT (
        SELECT min(stream) FROM job
        WHERE place = 1 AND stream >= iif(found.stream < 2199023255552, found.stream + 1, (found.stream >> 41) + 1 << 41)
    )
    FROM found
    WHERE found.stream IS NOT NULL
)
SELECT json_array(json_group_array(stream), 0) FROM found WHERE stream IS NOT NULL

-- name: ready_key_streams
-- The next streams of the limit keys of one (tenant, queue, type).
WITH RECURSIVE given (behind, before, most) AS (VALUES (?, ?, ?)),
found (stream, number) AS (
    SELECT (
        SELECT stream FROM job WHERE place = 1 AND stream > given.behind AND stream < given.before ORDER BY stream LIMIT 1
    ), 1
    FROM given
    UNION ALL
    SELECT
        (
            SELECT job.stream FROM job
            WHERE place = 1 AND job.stream > found.stream AND job.stream < given.before ORDER BY job.stream LIMIT 1
        ), number + 1
    FROM found
    CROSS JOIN given
    WHERE found.stream IS NOT NULL AND number < given.most
)
SELECT json_group_array(stream) FROM found WHERE stream IS NOT NULL

-- name: ready_heads
-- The first jobs of each of many streams, behind the rank given with it.
SELECT /* see ready_columns */
FROM json_each(?) AS wanted
CROSS JOIN job ON job.seq IN (
    SELECT head.seq FROM job AS head
    WHERE head.place = 1 AND head.stream = json_extract(wanted.value, '$[0]')
        AND (head.prio_key, head.time_key, head.seq) > (
            json_extract(wanted.value, '$[1]'), json_extract(wanted.value, '$[2]'), json_extract(wanted.value, '$[3]')
        )
        AND head.format <= ?
    ORDER BY head.prio_key, head.time_key, head.seq
    LIMIT ? + 0
)

-- name: ready_jobs
-- The next jobs of one stream, in order.
SELECT /* see ready_columns */
FROM (
    SELECT seq FROM job
    WHERE place = 1 AND stream = ? AND (prio_key, time_key, seq) > (?, ?, ?) AND format <= ?
    ORDER BY prio_key, time_key, seq
    LIMIT ? + 0
) AS found
CROSS JOIN job ON job.seq = found.seq

-- name: lease_jobs
-- What domain.jobs.transition.claim does to the record.
WITH given (seq, ticket, lease_expires_at) AS (VALUES (?, ?, ?) /* each row */)
UPDATE job SET
    place = 2, status = 'running', last_move = 'claim', rev = rev + 1, updated_at = ?, attempt = attempt + 1,
    fence = max(fence, ?) + 1, owner = ?, ticket = given.ticket, lease_expires_at = given.lease_expires_at,
    start_rev = rev + 1, started_at = ?
FROM given
WHERE job.seq = given.seq AND job.place = 1
-- neighbours: up, up, same
UPDATE job SET
    place = 2, status = 'running', last_move = 'claim', rev = rev + 1, updated_at = ?5, attempt = attempt + 1,
    fence = max(fence, ?6) + 1, owner = ?7, ticket = ?2 + seq - ?1, lease_expires_at = ?3,
    start_rev = rev + 1, started_at = ?8
WHERE seq BETWEEN ?1 AND ?1 + ?4 - 1 AND place = 1
