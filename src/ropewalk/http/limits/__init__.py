"""Limits of queues, types and keys, and quotas of tenants, over HTTP."""
