"""Who sends a request, and what this identity may do."""
