"""Webhooks: signatures, addresses and deliveries."""
