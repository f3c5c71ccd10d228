"""The benchmarks behind `driftline lab`."""
