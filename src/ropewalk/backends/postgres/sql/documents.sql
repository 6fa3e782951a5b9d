-- Documents. Which of them are meant is said first, as numbers with the sizes of their bodies, so that nobody reads more
-- bytes at once than one document may have.

-- name: lock_documents
-- Those of these keys that are there, without their bodies. In order of key, so that two who want several never wait for
-- each other.
WITH wanted AS MATERIALIZED (SELECT value ->> 0 AS kind, value ->> 1 AS id FROM json_array_elements(%s)),
locked AS MATERIALIZED (
    SELECT found.*
    FROM (SELECT * FROM wanted ORDER BY kind COLLATE "C", id COLLATE "C") AS wanted
    CROSS JOIN LATERAL (
        SELECT kind, id, number, rev, created_at, updated_at, due_at, expires_at FROM document
        WHERE document.kind = wanted.kind AND document.id = wanted.id
        FOR UPDATE
    ) AS found
)
SELECT coalesce(
    json_agg(json_build_array(kind, id, number, rev, created_at, updated_at, due_at, expires_at)), '[]'
) FROM locked

-- name: insert_documents
INSERT INTO document (
    kind, id, number, rev, tenant, topic, created_at, updated_at, due_at, expires_at, body
)
SELECT * FROM unnest(
    %s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::text[], %s::text[], %s::bigint[], %s::bigint[],
    %s::bigint[], %s::bigint[], %s::bytea[]
)
ON CONFLICT (kind, id) DO NOTHING

-- name: update_documents
UPDATE document SET
    number = changed.number, rev = changed.rev, tenant = changed.tenant, topic = changed.topic,
    created_at = changed.created_at, updated_at = changed.updated_at, due_at = changed.due_at,
    expires_at = changed.expires_at, body = changed.body
FROM unnest(
    %s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::text[], %s::text[], %s::bigint[], %s::bigint[],
    %s::bigint[], %s::bigint[], %s::bytea[]
) AS changed (kind, id, number, rev, tenant, topic, created_at, updated_at, due_at, expires_at, body)
WHERE document.kind = changed.kind AND document.id = changed.id

-- name: documents_named
SELECT coalesce(json_agg(json_build_array(number, size)), '[]')
FROM (SELECT DISTINCT value FROM json_array_elements_text(%s)) AS wanted
CROSS JOIN LATERAL (
    SELECT number, length(body) AS size FROM document
    WHERE document.kind = %s AND document.id = wanted.value AND (expires_at IS NULL OR expires_at > %s)
    OFFSET 0
) AS found

-- name: load_documents
SELECT
    coalesce(json_agg(json_build_array(
        number, id, tenant, topic, rev, created_at, updated_at, due_at, expires_at
    ) ORDER BY place), '[]'),
    coalesce(json_agg(length(body) ORDER BY place), '[]'),
    string_agg(body, '' ORDER BY place)
FROM json_array_elements_text(%s) WITH ORDINALITY AS wanted (value, place)
CROSS JOIN LATERAL (
    SELECT * FROM document
    WHERE document.kind = %s AND document.number = wanted.value::bigint
    OFFSET 0
) AS found

-- part: documents_page
SELECT coalesce(json_agg(json_build_array(number, size) ORDER BY number {direction}), '[]') FROM (
    SELECT number, length(body) AS size FROM document
    WHERE {which} AND (expires_at IS NULL OR expires_at > :now) AND number {passed} :after
    ORDER BY number {direction}
    LIMIT :limit
) AS page

-- name: documents_of_kind
/* see documents_page
which = kind = :kind
passed = >
direction = ASC
*/

-- name: newest_documents_of_kind
/* see documents_page
which = kind = :kind
passed = <
direction = DESC
*/

-- name: documents_of_tenant
/* see documents_page
which = kind = :kind AND tenant = :tenant
passed = >
direction = ASC
*/

-- name: newest_documents_of_tenant
/* see documents_page
which = kind = :kind AND tenant = :tenant
passed = <
direction = DESC
*/

-- name: documents_of_topic
/* see documents_page
which = kind = :kind AND topic = :topic AND (CAST(:tenant AS text) IS NULL OR tenant || '' = :tenant)
passed = >
direction = ASC
*/

-- name: newest_documents_of_topic
/* see documents_page
which = kind = :kind AND topic = :topic AND (CAST(:tenant AS text) IS NULL OR tenant || '' = :tenant)
passed = <
direction = DESC
*/

-- part: documents_counted
SELECT count(*) FROM (
    SELECT FROM document
    WHERE {which} AND (expires_at IS NULL OR expires_at > :now)
    LIMIT :limit
) AS counted

-- name: count_documents_of_kind
/* see documents_counted
which = kind = :kind
*/

-- name: count_documents_of_tenant
/* see documents_counted
which = kind = :kind AND tenant = :tenant
*/

-- name: count_documents_of_topic
/* see documents_counted
which = kind = :kind AND topic = :topic AND (CAST(:tenant AS text) IS NULL OR tenant || '' = :tenant)
*/

-- name: bring_documents_nearer
-- Those that were written by a clock which has been set back since (domain/jobs/clock_set_back.py): they are due, and expire, as
-- long from now on as they were to be from then on.
WITH given AS (SELECT %s::text AS kind, %s::bigint AS now, %s::bigint AS ahead_from),
ahead AS MATERIALIZED (
    SELECT document.ctid FROM given
    CROSS JOIN LATERAL (
        SELECT document.ctid FROM document
        WHERE document.kind = given.kind AND due_at IS NOT NULL AND updated_at > given.ahead_from
        FOR UPDATE SKIP LOCKED
    ) AS document
)
UPDATE document SET
    due_at = due_at - (updated_at - now), expires_at = expires_at - (updated_at - now), updated_at = now
FROM given
WHERE document.ctid = ANY (ARRAY(SELECT ctid FROM ahead))

-- name: due_documents
WITH due AS MATERIALIZED (
    SELECT number, length(body) AS size FROM document
    WHERE kind = %(1)s AND due_at <= %(2)s AND (expires_at IS NULL OR expires_at > %(2)s)
    ORDER BY due_at, number
    LIMIT %(3)s
    FOR UPDATE SKIP LOCKED
)
SELECT coalesce(json_agg(json_build_array(number, size)), '[]') FROM due

-- name: hide_documents
UPDATE document SET due_at = hidden.due_at, updated_at = hidden.updated_at, rev = hidden.rev
FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[])
    AS hidden (kind, number, rev, updated_at, due_at)
WHERE document.kind = hidden.kind AND document.number = hidden.number

-- name: delete_documents
DELETE FROM document
WHERE kind = %s AND id = ANY (ARRAY(SELECT value FROM json_array_elements_text(%s)))

-- name: prune_documents
WITH gone AS MATERIALIZED (SELECT ctid FROM document WHERE expires_at <= %s LIMIT %s FOR UPDATE SKIP LOCKED)
DELETE FROM document WHERE ctid = ANY (ARRAY(SELECT ctid FROM gone))
