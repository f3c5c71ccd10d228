"""The simulated web: pages of realistic size and markup that change, with latency and bandwidth."""
