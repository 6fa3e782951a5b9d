-- Schedules. A change names the version that was read. If another change came first, the statement changes no row. A
-- row is returned as an array, in the order of the columns (backends/sql/schedules.py).

-- name: insert_schedule
INSERT INTO schedule (tenant, name, version, generation, next_fire, last_fire, paused, overridden, plan)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING

-- name: update_schedule
UPDATE schedule SET
    version = ?, generation = ?, next_fire = ?, last_fire = ?, paused = ?, overridden = ?, plan = ?
WHERE tenant = ? AND name = ? AND version = ?

-- name: delete_schedule
DELETE FROM schedule WHERE tenant = ? AND name = ? AND version = ?

-- name: schedules_named
SELECT json_group_array(json_array(
    tenant, name, version, generation, next_fire, last_fire, paused, overridden, json(plan)
))
FROM (
    SELECT schedule.*
    FROM (SELECT DISTINCT value FROM json_each(?)) AS wanted
    CROSS JOIN schedule ON schedule.tenant = ? AND schedule.name = wanted.value
    ORDER BY name
)

-- name: schedules_of
SELECT json_group_array(json_array(
    tenant, name, version, generation, next_fire, last_fire, paused, overridden, json(plan)
))
FROM (SELECT * FROM schedule WHERE tenant = ? AND name > ? ORDER BY name LIMIT ?)

-- name: due_schedules
SELECT json_group_array(json_array(
    tenant, name, version, generation, next_fire, last_fire, paused, overridden, json(plan)
))
FROM (
    SELECT * FROM schedule
    WHERE next_fire <= ? AND (next_fire, tenant, name) > (?, ?, ?)
    ORDER BY next_fire, tenant, name
    LIMIT ?
)

-- name: next_schedule
SELECT min(next_fire) FROM schedule WHERE next_fire > ?

-- name: all_plans
SELECT json_group_array(json(plan)) FROM schedule
