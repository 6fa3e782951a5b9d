-- Documents. Which of them are meant is said first, as numbers with the sizes of their bodies, so that nobody reads more
-- bytes at once than one document may have.

-- name: lock_documents
-- Those of these keys that are there, without their bodies.
SELECT json_group_array(json_array(
    document.kind, document.id, number, rev, created_at, updated_at, due_at, expires_at
))
FROM json_each(?) AS wanted
CROSS JOIN document ON document.kind = wanted.value ->> 0 AND document.id = wanted.value ->> 1

-- name: insert_documents
INSERT INTO document (
    kind, id, number, rev, tenant, topic, created_at, updated_at, due_at, expires_at, body
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) /* each row */
ON CONFLICT (kind, id) DO NOTHING

-- name: update_documents
WITH changed (kind, id, number, rev, tenant, topic, created_at, updated_at, due_at, expires_at, body) AS (
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) /* each row */
)
UPDATE document SET
    number = changed.number, rev = changed.rev, tenant = changed.tenant, topic = changed.topic,
    created_at = changed.created_at, updated_at = changed.updated_at, due_at = changed.due_at,
    expires_at = changed.expires_at, body = changed.body
FROM changed
WHERE document.kind = changed.kind AND document.id = changed.id

-- name: documents_named
SELECT json_group_array(json_array(number, length(body)))
FROM (SELECT DISTINCT value FROM json_each(?)) AS wanted
CROSS JOIN document ON document.kind = ? AND document.id = wanted.value AND (expires_at IS NULL OR expires_at > ?)

-- name: load_documents
SELECT
    json_group_array(json_array(number, id, tenant, topic, rev, created_at, updated_at, due_at, expires_at)),
    json_group_array(length(body)),
    CAST(group_concat(body, '') AS BLOB)
FROM (
    SELECT document.*
    FROM json_each(?) AS wanted
    CROSS JOIN document ON +document.kind = ? AND document.number = wanted.value
    ORDER BY wanted.key
)

-- part: documents_page
SELECT json_group_array(json_array(number, size)) FROM (
    SELECT number, length(body) AS size FROM document
    WHERE {which} AND (expires_at IS NULL OR expires_at > :now) AND number {passed} :after
    ORDER BY number {direction}
    LIMIT :limit + 0
)

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
which = kind = :kind AND topic = :topic AND (:tenant IS NULL OR +tenant = :tenant)
passed = >
direction = ASC
*/

-- name: newest_documents_of_topic
/* see documents_page
which = kind = :kind AND topic = :topic AND (:tenant IS NULL OR +tenant = :tenant)
passed = <
direction = DESC
*/

-- part: documents_counted
SELECT count(*) FROM (
    SELECT 1 FROM document WHERE {which} AND (expires_at IS NULL OR expires_at > :now) LIMIT :limit + 0
)

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
which = kind = :kind AND topic = :topic AND (:tenant IS NULL OR +tenant = :tenant)
*/

-- name: bring_documents_nearer
-- Those that were written by a clock which has been set back since (domain/jobs/clock_set_back.py): they are due, and expire, as
-- long from now on as they were to be from then on.
WITH given (kind, now, ahead_from) AS (VALUES (?, ?, ?))
UPDATE document SET
    due_at = due_at - (updated_at - now), expires_at = expires_at - (updated_at - now), updated_at = now
FROM given
WHERE document.kind = given.kind AND due_at IS NOT NULL AND updated_at > given.ahead_from

-- name: due_documents
SELECT json_group_array(json_array(number, size)) FROM (
    SELECT number, length(body) AS size FROM document
    WHERE kind = ?1 AND due_at <= ?2 AND (expires_at IS NULL OR expires_at > ?2)
    ORDER BY due_at, number
    LIMIT ?3 + 0
)

-- name: hide_documents
WITH hidden (kind, number, rev, updated_at, due_at) AS (VALUES (?, ?, ?, ?, ?) /* each row */)
UPDATE document SET due_at = hidden.due_at, updated_at = hidden.updated_at, rev = hidden.rev
FROM hidden
WHERE +document.kind = hidden.kind AND document.number = hidden.number

-- name: delete_documents
DELETE FROM document WHERE kind = ? AND id IN (SELECT value FROM json_each(?))

-- name: prune_documents
DELETE FROM document WHERE number IN (SELECT number FROM document WHERE expires_at <= ? LIMIT ? + 0)
