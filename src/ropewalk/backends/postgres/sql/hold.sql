-- What the holder of a lease writes. Every statement repeats the fence and the owner.

-- name: complete_plain
-- The end of those that this owner holds, with no other flags than these. What it has to wait for it looks at again.
WITH done AS (
    UPDATE standing SET
        place = 3, status = 'completed', last_move = 'complete', rev = rev + 1, updated_at = %(4)s, finished_at = %(5)s,
        lease_expires_at = NULL, error = NULL, result = each(3 bytea)
    WHERE place = 2 AND seq = ANY (%(1)s::bigint[]) AND fence = each(2 bigint) AND owner = %(6)s
        AND (flags & ~(%(7)s::integer)) = 0
    RETURNING seq
)
SELECT coalesce(json_agg(seq), '[]') FROM done

-- name: leases_to_renew
WITH held AS MATERIALIZED (
    SELECT seq, fence, cancel FROM running
    WHERE seq = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(%s))) AND owner = %s
    FOR UPDATE SKIP LOCKED
)
SELECT coalesce(json_agg(json_build_array(seq, fence, cancel::json)), '[]') FROM held

-- name: standing_of
SELECT coalesce(json_agg(json_build_array(seq, fence, owner, status)), '[]') FROM standing
WHERE seq = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(%s)))

-- name: renew_leases
UPDATE running SET lease_expires_at = each(3 bigint), progress = coalesce(each(4 text), progress)
WHERE seq = ANY (%(1)s::bigint[]) AND fence = each(2 bigint) AND owner = %(5)s

-- name: write_note
UPDATE running SET checkpoint = %s, progress = %s WHERE seq = %s AND fence = %s AND owner = %s

-- name: enlist_worker
INSERT INTO worker (id, host, pid, types, queues, tenants, concurrency, started_at, beat_at, lease_us)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (id) DO UPDATE SET
    host = excluded.host, pid = excluded.pid, types = excluded.types, queues = excluded.queues,
    tenants = excluded.tenants, concurrency = excluded.concurrency, beat_at = excluded.beat_at,
    lease_us = excluded.lease_us

-- name: beat
-- A claim of the same worker may hold its row, and wait for others: no renewal waits with it.
WITH own AS MATERIALIZED (SELECT %s::bigint AS now, ctid FROM worker WHERE id = %s FOR NO KEY UPDATE SKIP LOCKED)
UPDATE worker SET beat_at = (SELECT now FROM own) WHERE ctid = ANY (ARRAY(SELECT ctid FROM own))

-- name: dismiss_worker
DELETE FROM worker WHERE id = %s

-- name: bump_control
UPDATE meta SET control = control + 1
