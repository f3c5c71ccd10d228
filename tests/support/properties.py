"""How long hypothesis looks: by count and never by the clock, for the machine may be busy with other things."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

searched = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
searched_briefly = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
