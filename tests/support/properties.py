"""How long hypothesis looks: by count and never by the clock, for the machine may be busy with other things.

The profile (`conftest.py`) says how many examples: `make test` looks at the same ones every time, so that it says the
same of the same code; `make fuzz` looks at new ones, and at many more.
"""

from __future__ import annotations

from hypothesis import settings

searched = settings()
searched_briefly = settings(max_examples=settings().max_examples // 4)
