"""Tallies: how often each outcome was seen in each cell of a score, and the ways to count them.

The public names stand in `__init__.pyi`, and each is loaded when it is first used: to verify a
certificate takes the grids, and nothing that reads rows.
"""

from pacbound.lazy_names import homes_in_stub, lazy_names

_HOMES = homes_in_stub(__file__)
__all__ = sorted(_HOMES)  # noqa: PLE0605, a list that the stub holds
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
