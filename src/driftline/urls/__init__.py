"""URLs: canonical form, tracking parameters, equivalence, parts, and lists of them."""
