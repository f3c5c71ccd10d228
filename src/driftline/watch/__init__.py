"""The service that keeps checking pages: it schedules, checks, records and publishes."""
