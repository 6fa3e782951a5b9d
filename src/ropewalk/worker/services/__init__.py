"""What every worker does for all, in the background: each a config and one `run_once`."""
