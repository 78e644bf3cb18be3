"""Cascades: fast models that answer for a slow one, certified to lose at most so much accuracy, and
routing over any models.

The public names stand in `__init__.pyi`, and each is loaded when it is first used.
"""

from pacbound.lazy_names import homes_in_stub, lazy_names

_HOMES = homes_in_stub(__file__)
__all__ = sorted(_HOMES)  # noqa: PLE0605, a list that the stub holds
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
