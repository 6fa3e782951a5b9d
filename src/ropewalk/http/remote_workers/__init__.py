"""Routes for workers that have no access to the store: they claim, renew and settle jobs through HTTP."""
