"""What users can observe of a running system: events, metrics, traces, and the findings of the doctor."""
