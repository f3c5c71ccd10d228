"""Which differences matter: rules, what was learned from earlier checks, and the confirming fetch."""
