"""Counters, gauges and histograms of one app in this process, and their Prometheus text. They need no other library."""
