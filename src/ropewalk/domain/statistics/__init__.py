"""What is counted about jobs: counters, histograms and the statistics made of them."""
