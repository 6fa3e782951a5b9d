"""What a worker keeps while it follows policies. What people write is in definitions/policies.py."""
