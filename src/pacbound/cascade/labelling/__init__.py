"""Labels as they come: which rows to ask for, what they prove so far, and when to stop."""

from pacbound.cascade.labelling.progress import LabelProgress
from pacbound.cascade.labelling.session import LabelSession

__all__ = ["LabelProgress", "LabelSession"]
