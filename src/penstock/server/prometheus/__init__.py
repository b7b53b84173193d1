"""Metrics for Prometheus: counters come from the store, so that all processes tell the same."""
