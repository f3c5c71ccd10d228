"""The second paper's data set, its Table 1: 23 pages with their frequency, weightage and TTL."""

from __future__ import annotations

from driftline.model import Visited

_ROWS = (
    (1, 34, 21, 32),
    (2, 20, 22, 17),
    (3, 21, 34, 13),
    (4, 6, 66, 4),
    (5, 7, 55, 4),
    (6, 9, 44, 5),
    (7, 50, 33, 29),
    (8, 70, 55, 12),
    (9, 21, 32, 13),
    (10, 43, 65, 34),
    (11, 100, 34, 80),
    (12, 50, 23, 40),
    (13, 50, 44, 43),
    (14, 70, 32, 56),
    (15, 4, 44, 3),
    (16, 6, 32, 3),
    (17, 2, 54, 1),
    (18, 1, 76, 0),
    (19, 8, 77, 0),
    (20, 9, 45, 0),
    (21, 40, 76, 0),
    (22, 100, 75, 0),
    (23, 70, 12, 35),
)

EXAMPLE = tuple(
    Visited(sno, f"http://trdinfotech.com/page{sno}", frequency, float(weightage), ttl)
    for sno, frequency, weightage, ttl in _ROWS
)
