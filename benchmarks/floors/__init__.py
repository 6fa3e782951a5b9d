"""The floors: the least that could be called a queue on each store, to measure a full one against.

What they share with any queue: the caller gets an id of its own making for each job, which the store can find it by;
arguments are encoded at submission; the handler is called with them decoded. Then lease, attempt, priority, run_at,
wake-up and at-least-once acknowledgement, in batches; no retries, heartbeats, results, history, idempotency, tenants,
events or shutdown worth the name (docs/decisions/0011).
"""
