"""What a running handler sees: its context, and the port behind it."""
