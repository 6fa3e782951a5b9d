"""What users write: job types, jobs, options, results and the context, with the codec of their values. Runs nothing."""
