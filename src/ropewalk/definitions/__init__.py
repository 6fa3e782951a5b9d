"""What users write: job types, jobs, results, the context's face, and how their values travel. Never runs anything."""
