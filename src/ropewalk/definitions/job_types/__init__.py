"""Job types are made by decorators; a contract says what their handlers take and return."""
