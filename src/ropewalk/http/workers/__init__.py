"""Workers and the state of the store, as operators see them over HTTP."""
