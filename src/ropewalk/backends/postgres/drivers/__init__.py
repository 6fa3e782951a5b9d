"""The drivers whose connections users may pass, with one module for each. Each runs a statement and returns its
rows."""
