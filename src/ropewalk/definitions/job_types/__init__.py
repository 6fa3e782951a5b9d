"""Job types: decorators, signatures, arguments and what handlers return."""
