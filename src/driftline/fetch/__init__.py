"""Fetching pages over HTTP, politely: transfers, hosts and their delays, robots.txt, redirects, guards."""
