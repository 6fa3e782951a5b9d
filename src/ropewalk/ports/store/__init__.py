"""The storage port: the verbs of a store, and the messages that they take and return."""
