"""Claims: the order in which ready jobs are given out, what a claim reads first, and what it remembers for the next."""
