"""Workflow bookkeeping shared by the stores that decide inside their own transaction; each brings a Ledger."""
