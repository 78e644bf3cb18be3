"""The usual ways to get confidences and thresholds, to compare with. None has a guarantee.

Confidences come from the softmax, from temperature scaling or from histogram binning; thresholds
for cascades, for shields and for abstaining follow from them.

The public names stand in `__init__.pyi`, and each is loaded when it is first used.
"""

from pacbound.lazy_names import homes_in_stub, lazy_names

_HOMES = homes_in_stub(__file__)
__all__ = sorted(_HOMES)  # noqa: PLE0605, a list that the stub holds
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
