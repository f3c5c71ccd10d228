"""Addresses: canonical form, tracking parameters, equivalence, and lists of them."""
