"""The storage port: the verbs of a store, and the messages they take and answer."""
