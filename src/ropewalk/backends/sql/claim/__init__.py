"""Giving out work: the order of ready jobs, what a claim sees, and what claims remember of one another."""
