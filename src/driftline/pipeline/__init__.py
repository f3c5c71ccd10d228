"""Wiring of the steps: queues, producers, consumers, the recorder, and how many of each there are."""
