"""Making a release: `make release` (see __main__.py)."""
