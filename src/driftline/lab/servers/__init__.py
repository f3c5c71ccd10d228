"""Servers for benchmarks and tests: many polite hosts, hostile hosts, a site to crawl, PostgreSQL."""
