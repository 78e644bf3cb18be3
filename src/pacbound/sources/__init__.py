"""Sources open rows and deliver them. They know nothing of what rows are counted for.

A source delivers rows that stay in an engine, as a frame, or rows in batches, and names files by
what is in them.

The names that other packages use stand in `__init__.pyi`, and each is loaded when it is first used.
"""

from pacbound.lazy_names import homes_in_stub, lazy_names

_HOMES = homes_in_stub(__file__)
__all__ = sorted(_HOMES)  # noqa: PLE0605, a list that the stub holds
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
