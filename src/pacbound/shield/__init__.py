"""Shields: a backup policy takes over before it is too late, certified to leave at most so many
rollouts unsafe.

What makes rollouts needs Gymnasium and joblib, and is loaded when it is first used. Without them
its names are there, and raise a `MissingDependencyError` with the pip command when they are used.
The public names stand in `__init__.pyi`.
"""

from pacbound.lazy_names import homes_in_stub, lazy_names

_HOMES = homes_in_stub(__file__)
__all__ = sorted(_HOMES)  # noqa: PLE0605, a list that the stub holds
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
