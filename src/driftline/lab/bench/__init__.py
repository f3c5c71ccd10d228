"""Benchmarks, one module for each."""
