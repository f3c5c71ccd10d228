"""What HTTP says: response headers and credentials."""
