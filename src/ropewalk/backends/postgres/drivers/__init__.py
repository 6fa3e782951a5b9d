"""The drivers whose connections a user may bring, one module each: a statement in, its rows out."""
