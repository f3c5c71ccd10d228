"""The data types that all parts share: pages, outcomes of checks, changes, events, visits."""
