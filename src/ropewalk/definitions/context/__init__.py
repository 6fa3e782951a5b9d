"""The context of a running handler, and the port through which it reaches the attempt."""
