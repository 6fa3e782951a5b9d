"""What can be seen of a running system: events, metrics, traces, and the doctor."""
