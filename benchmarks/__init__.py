"""Measurements, run by hand: `python -m benchmarks.bench_events` and the like."""
