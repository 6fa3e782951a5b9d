-- What the holder of a lease writes. Every statement repeats the fence and the owner.
-- `place + 0`, here and elsewhere: jobs that are named are found by their number, never through the index of their place.

-- name: held_leases
-- Of those asked for: what this owner holds, as far as no other flags are set than these.
WITH held AS MATERIALIZED (
    SELECT job.seq, fence
    FROM json_array_elements_text(%s) AS wanted
    JOIN job ON job.seq = wanted.value::bigint
    WHERE place + 0 = 2 AND owner = %s AND (flags & ~(%s::integer)) = 0
    ORDER BY job.seq
    FOR UPDATE OF job
)
SELECT coalesce(json_object_agg(seq, fence), '{}') FROM held

-- name: complete_plain
WITH done (seq, fence, result) AS (SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::bytea[]))
UPDATE job SET
    place = 3, status = 'completed', last_move = 'complete', rev = rev + 1, updated_at = %s, finished_at = %s,
    lease_expires_at = NULL, error = NULL, result = done.result
FROM done
WHERE job.seq = done.seq AND job.fence = done.fence AND job.owner = %s AND job.place + 0 = 2

-- name: renew_leases
WITH renewed (seq, fence, lease_expires_at, progress) AS (
    SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::text[])
)
UPDATE job SET lease_expires_at = renewed.lease_expires_at, progress = renewed.progress
FROM renewed
WHERE job.seq = renewed.seq AND job.fence = renewed.fence AND job.owner = %s AND job.place + 0 = 2

-- name: write_note
UPDATE job SET checkpoint = %s, progress = %s WHERE seq = %s AND fence = %s AND owner = %s AND place + 0 = 2

-- name: enlist_worker
INSERT INTO worker (id, host, pid, types, queues, tenants, concurrency, started_at, beat_at, lease_us)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (id) DO UPDATE SET
    host = excluded.host, pid = excluded.pid, types = excluded.types, queues = excluded.queues,
    tenants = excluded.tenants, concurrency = excluded.concurrency, beat_at = excluded.beat_at,
    lease_us = excluded.lease_us

-- name: beat
UPDATE worker SET beat_at = %s WHERE id = %s

-- name: dismiss_worker
DELETE FROM worker WHERE id = %s

-- name: bump_control
UPDATE meta SET control = control + 1
