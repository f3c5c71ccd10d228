"""The consumer's work: proving that a page is unchanged, or finding out what changed."""
