"""The steps that bring a store's schema up to date."""
