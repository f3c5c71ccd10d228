"""HTTP: response headers, content codings, and the credentials sent with requests."""
