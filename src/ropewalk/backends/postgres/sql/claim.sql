-- name: promote_due
WITH due AS MATERIALIZED (
    SELECT seq FROM waiting WHERE unmet = 0 AND run_at <= %s ORDER BY run_at LIMIT %s FOR UPDATE SKIP LOCKED
)
UPDATE job_by_stage SET stage = 1 WHERE stage = 0 AND seq = ANY (ARRAY(SELECT seq FROM due))

-- part: noted
-- Records which jobs the worker has started, together with the claim, because every round trip takes time. A claim
-- that arrives after a later one of the same worker records nothing.
noted AS (
    UPDATE worker SET
        started_upto = greatest(started_upto, :started_upto::bigint), unstarted = :unstarted, turn = :turn::bigint
    WHERE id = :owner AND turn <= :turn::bigint AND (started_upto < :started_upto OR unstarted <> :unstarted)
)

-- name: unanswered_of
SELECT unanswered FROM worker WHERE id = %s AND turn <= %s FOR UPDATE

-- name: note_unanswered
UPDATE worker SET unanswered = %s, turn = %s WHERE id = %s

-- name: leases_of_tickets
-- Returns the jobs that a worker has leased under tickets of these ranges.
WITH held AS MATERIALIZED (
    SELECT seq FROM running
    WHERE owner = %s AND EXISTS (
        SELECT FROM json_array_elements(%s::json) AS given
        WHERE running.ticket BETWEEN (given ->> 0)::bigint AND (given ->> 1)::bigint
    )
    ORDER BY seq
    FOR UPDATE SKIP LOCKED
)
SELECT coalesce(json_agg(seq), '[]') FROM held

-- part: situation_columns
(SELECT epoch FROM meta) AS epoch,
(SELECT control FROM meta) AS control,
(SELECT coalesce(json_agg(json_build_array(tenant, name)), '[]') FROM queue WHERE paused = 1) AS paused,
(SELECT coalesce(json_agg(json_build_array(run_at, lane)), '[]') FROM (
    SELECT run_at, sublane / 2 AS lane FROM waiting WHERE unmet = 0 ORDER BY run_at LIMIT :dues
) AS due) AS dues,
(SELECT min(wake_at) FROM waiting WHERE wake_at IS NOT NULL) AS next_wait

-- name: claim_snapshot
-- Returns which queues are paused and what becomes due next. `control` shows whether the limits that the caller
-- knows are still valid. With `look`, the answer contains the sublanes with ready jobs, too.
WITH /* see noted */
SELECT /* see situation_columns */,
    CASE WHEN :look::boolean THEN (/* see ready_sublanes */) END

-- part: leased
-- Writes what domain.jobs.transition.claim changes in a record.
stage = 2, status = 'running', last_move = 'claim', rev = rev + 1, updated_at = {now}, attempt = attempt + 1,
fence = greatest(fence, {first_fence}) + 1, owner = {owner}, ticket = {ticket}, lease_expires_at = {expires_at},
start_rev = rev + 1, started_at = {now}

-- part: must_start_at_once
-- The rule domain.jobs.quarantine.must_start_at_once for a ready job (test_statements.py compares them).
crashes > 0 OR coalesce(attempt + 1 >= max_attempts, false)

-- name: claim_single_sublane
-- A whole claim, if all ready jobs are in one sublane, nothing else is due, it is not time to search for expired
-- leases (or this claim may not take them back), and `control` still has the value at which there was no limit and
-- no pause. Each of the first jobs must be one that may be given out as it is: in time, not on its last attempt
-- unless there is a slot for it, and with the lease of its type. Otherwise the statement leases nothing. Without
-- `look`, it goes on behind a rank, and there must be as many jobs as the claim asks for. It writes what lease_jobs
-- would write, and returns the jobs as they were before, with the names of their lane. It also returns whether a row
-- has other names, because such a row is damaged.
WITH /* see noted */,
situation AS MATERIALIZED (
    SELECT
        coalesce(:now::bigint, /* see begun */) AS now,
        /* see situation_columns */,
        CASE WHEN :look::boolean THEN (/* see ready_sublanes */) END AS ready_found
),
expected AS MATERIALIZED (
    SELECT now, epoch << :epoch_shift::integer AS first_fence
    FROM situation
    WHERE control = :control::bigint
        AND coalesce((dues -> 0 ->> 0)::bigint > now, true) AND coalesce(next_wait > now, true)
        AND ((now >= :sweep_from::bigint AND now < :sweep_by::bigint) OR coalesce(now > :take_back_until::bigint, false))
        AND coalesce(json_array_length(ready_found -> 0) <= 1, true)
        AND coalesce((ready_found -> 0 ->> 0)::bigint = :sublane::bigint, true)
),
found AS MATERIALIZED (
    SELECT * FROM ready
    WHERE sublane = :sublane::bigint
        AND (prio_key, time_key, seq) > (:prio_key::bigint, :time_key::bigint, :seq::bigint)
        AND format <= :format::integer
        AND EXISTS (SELECT FROM expected)
    ORDER BY prio_key, time_key, seq
    LIMIT :limit::bigint
    FOR UPDATE SKIP LOCKED
),
given AS MATERIALIZED (
    SELECT
        array_agg(seq) AS seqs,
        array_agg(:first_ticket::bigint - 1 + number) AS tickets,
        coalesce(bool_and(
            coalesce(deadline > (SELECT now FROM expected), true)
            AND (number <= :slots::bigint OR NOT (/* see must_start_at_once */))
            AND flags & :own_lease::integer = 0
        ), true) AND EXISTS (SELECT FROM expected) AND (:look::boolean OR count(*) = :limit::bigint) AS as_expected
    FROM (
        SELECT seq, row_number() OVER () AS number, deadline, attempt, max_attempts, crashes, flags FROM found ORDER BY seq
    ) AS numbered
),
leased AS (
    UPDATE job_by_stage SET
        /* see leased
        now = (SELECT now FROM expected)
        first_fence = (SELECT first_fence FROM expected)
        owner = :owner
        ticket = ((SELECT tickets FROM given))[width_bucket(seq, (SELECT seqs FROM given))]
        expires_at = (SELECT now FROM expected) + :lease_us::bigint
        */
    WHERE stage = 1 AND seq = ANY ((SELECT seqs FROM given)::bigint[]) AND (SELECT as_expected FROM given)
)
SELECT
    (SELECT now FROM situation), (SELECT as_expected FROM given), (SELECT epoch FROM situation),
    (SELECT control FROM situation), (SELECT paused FROM situation), (SELECT dues FROM situation),
    (SELECT next_wait FROM situation), (SELECT ready_found FROM situation),
    coalesce(bool_or(type <> :type::text OR queue <> :queue::text OR tenant <> :tenant::text), false),
    coalesce('[' || string_agg(concat('[', concat_ws(
        ',', seq, to_json(id), :of_lane::text, /* see ready_of_its_own */
    ), ']'), ',') || ']', '[]'),
    /* see other_columns */
FROM (SELECT * FROM found WHERE (SELECT as_expected FROM given)) AS head
JOIN LATERAL (SELECT * FROM submitted WHERE submitted.seq = head.seq OFFSET 0) AS body USING (seq)

-- name: ready_sublanes
-- Returns the sublanes with ready jobs, by one step through the index for each, however many jobs it has. The
-- sublanes of limit keys begin at 2^41; of those of one (tenant, queue, type), only the first is returned. Also
-- returns how long that took on the server, in µs: this is the only sign of dead rows on the way.
WITH RECURSIVE found (began, sublane) AS (
    SELECT clock_timestamp(), (SELECT sublane FROM ready ORDER BY sublane LIMIT 1)
    UNION ALL
    SELECT began, (
        SELECT ready.sublane FROM ready
        WHERE ready.sublane >= CASE
            WHEN found.sublane < 2199023255552 THEN found.sublane + 1 ELSE ((found.sublane >> 41) + 1) << 41
        END
        ORDER BY ready.sublane
        LIMIT 1
    )
    FROM found
    WHERE found.sublane IS NOT NULL
)
SELECT json_build_array(
    coalesce(json_agg(sublane) FILTER (WHERE sublane IS NOT NULL), '[]'),
    (extract(epoch FROM clock_timestamp() - min(began)) * 1000000)::bigint
)
FROM found

-- name: ready_key_sublanes
-- Returns the next sublanes of the limit keys of one (tenant, queue, type).
WITH RECURSIVE given AS (SELECT %s::bigint AS behind, %s::bigint AS before, %s::integer AS most),
found (sublane, number) AS (
    SELECT (
        SELECT ready.sublane FROM ready
        WHERE ready.sublane > given.behind AND ready.sublane < given.before ORDER BY ready.sublane LIMIT 1
    ), 1
    FROM given
    UNION ALL
    SELECT (
        SELECT ready.sublane FROM ready
        WHERE ready.sublane > found.sublane AND ready.sublane < given.before ORDER BY ready.sublane LIMIT 1
    ), number + 1
    FROM found
    CROSS JOIN given
    WHERE found.sublane IS NOT NULL AND number < given.most
)
SELECT coalesce(json_agg(sublane), '[]') FROM found WHERE sublane IS NOT NULL

-- part: ready_columns
-- The record_columns of jobs that are about to be leased, without the values that the lease sets. They are put
-- together as text, which takes half the time of the functions for JSON (1.6 µs less for each job).
coalesce('[' || string_agg(concat('[', concat_ws(
    ',', seq, to_json(id), /* see ready_of_lane */, /* see ready_of_its_own */
), ']'), ',') || ']', '[]'),
/* see other_columns */

-- part: ready_columns_carefully
coalesce(json_agg(seq), '[]')

-- name: ready_heads
-- Returns the first jobs of each of many sublanes, behind the rank that comes with it, and the sublane of each job.
-- Jobs that another claim has locked are skipped.
WITH found AS MATERIALIZED (
    SELECT head.*
    FROM json_array_elements(%s) AS wanted
    CROSS JOIN LATERAL (
        SELECT * FROM ready
        WHERE sublane = (wanted ->> 0)::bigint
            AND (prio_key, time_key, seq) > ((wanted ->> 1)::bigint, (wanted ->> 2)::bigint, (wanted ->> 3)::bigint)
            AND format <= %s
        ORDER BY prio_key, time_key, seq
        LIMIT %s
        FOR UPDATE SKIP LOCKED
    ) AS head
)
SELECT /* see ready_columns */, coalesce(json_agg(sublane), '[]')
FROM found
JOIN LATERAL (SELECT * FROM submitted WHERE submitted.seq = found.seq OFFSET 0) AS body USING (seq)

-- name: ready_jobs
-- Returns the next jobs of one sublane, in order. Jobs that another claim has locked are skipped.
WITH found AS MATERIALIZED (
    SELECT * FROM ready
    WHERE sublane = %s AND (prio_key, time_key, seq) > (%s::bigint, %s::bigint, %s::bigint) AND format <= %s
    ORDER BY prio_key, time_key, seq
    LIMIT %s
    FOR UPDATE SKIP LOCKED
)
SELECT /* see ready_columns */
FROM found
JOIN LATERAL (SELECT * FROM submitted WHERE submitted.seq = found.seq OFFSET 0) AS body USING (seq)

-- name: lease_jobs
UPDATE job_by_stage SET
    /* see leased
    now = %(4)s
    first_fence = %(5)s
    owner = %(6)s
    ticket = each(2 bigint)
    expires_at = each(3 bigint)
    */
WHERE stage = 1 AND seq = ANY (%(1)s::bigint[])
