"""Recognise responses that are not the page: block pages, soft 404s, logins, empty shells, broken data."""
