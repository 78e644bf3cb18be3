"""Provable guarantees on what a trained classifier says.

From a held-out labelled sample, pacbound certifies an interval for the true confidence of every
prediction, with probability at least 1 - delta and no assumption on the model. Every answer is a
certificate that carries the integer counts it follows from, so that anyone can verify it without
the data.

The public names stand in `__init__.pyi`.
"""

from pacbound.lazy_names import homes_in_stub, lazy_names
from pacbound.version import VERSION

__version__ = VERSION
_HOMES = homes_in_stub(__file__)
__all__ = sorted(["__version__", *_HOMES])  # noqa: PLE0605, a list that the stub holds
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
