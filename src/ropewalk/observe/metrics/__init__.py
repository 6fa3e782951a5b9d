"""Counters, gauges and histograms of one app in this process, and their Prometheus text. Needs no library."""
