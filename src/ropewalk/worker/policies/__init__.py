"""The running state of the policies that a worker follows. What people write is in definitions/policies.py."""
