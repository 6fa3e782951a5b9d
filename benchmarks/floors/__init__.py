"""The floors: the least that could be called a queue on each store, to measure a full one against.

Lease, attempt, priority, run_at, wake-up and at-least-once acknowledgement, in batches; no retries, heartbeats,
results, history, idempotency, tenants, events or shutdown worth the name.
"""
