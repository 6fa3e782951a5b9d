"""One job: its states and record, how attempts end, retries, leases, claim order and history."""
