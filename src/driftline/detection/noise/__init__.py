"""Which differences matter.

`judge` decides about a change, with the help of the others. A new rule about what a text says belongs into `rules`, one
about clocks, dates, counters and ids into `volatile`, one about where a text stands into `region_rules`; `learning` is
what earlier checks taught.
"""
