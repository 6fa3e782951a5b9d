"""Several workers in processes of their own, started, replaced and drained as one."""
