"""What being watched costs: the same drain with nothing on, with metrics, with traces, with everything."""
