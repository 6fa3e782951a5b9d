-- Schedules. A change names the version that was read. If another change came first, the statement waits for its
-- commit and then changes no row. A row is returned as an array, in the order of the columns
-- (backends/sql/schedules.py).

-- name: insert_schedule
INSERT INTO schedule (tenant, name, version, generation, next_fire, last_fire, paused, overridden, plan)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT DO NOTHING

-- name: update_schedule
UPDATE schedule SET
    version = %s, generation = %s, next_fire = %s, last_fire = %s, paused = %s, overridden = %s, plan = %s
WHERE tenant = %s AND name = %s AND version = %s

-- name: delete_schedule
DELETE FROM schedule WHERE tenant = %s AND name = %s AND version = %s

-- name: schedules_named
SELECT coalesce(json_agg(json_build_array(
    tenant, name, version, generation, next_fire, last_fire, paused, overridden, plan::json
) ORDER BY name), '[]')
FROM (SELECT DISTINCT value FROM json_array_elements_text(%s)) AS wanted
CROSS JOIN LATERAL (
    SELECT * FROM schedule WHERE schedule.tenant = %s AND schedule.name = wanted.value OFFSET 0
) AS found

-- name: schedules_of
WITH page AS MATERIALIZED (SELECT * FROM schedule WHERE tenant = %s AND name > %s ORDER BY name LIMIT %s)
SELECT coalesce(json_agg(json_build_array(
    tenant, name, version, generation, next_fire, last_fire, paused, overridden, plan::json
) ORDER BY name), '[]')
FROM page

-- name: due_schedules
WITH page AS MATERIALIZED (
    SELECT * FROM schedule
    WHERE next_fire <= %s AND (next_fire, tenant, name) > (%s, %s, %s)
    ORDER BY next_fire, tenant, name
    LIMIT %s
)
SELECT coalesce(json_agg(json_build_array(
    tenant, name, version, generation, next_fire, last_fire, paused, overridden, plan::json
) ORDER BY next_fire, tenant, name), '[]')
FROM page

-- name: next_schedule
SELECT next_fire FROM schedule WHERE next_fire > %s ORDER BY next_fire LIMIT 1

-- name: all_plans
SELECT coalesce(json_agg(plan::json), '[]') FROM schedule
