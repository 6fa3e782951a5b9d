"""The client of an app enqueues jobs, waits for them, reads them and changes them."""
