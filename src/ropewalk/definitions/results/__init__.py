"""What a handler's return value or exception means for its job."""
