"""The producer's work: fetching the current state of pages over HTTP."""
