"""Labels as they come: which rows to ask for, what they prove so far, and when to stop."""

from pacbound.cascade.labelling.forecast import LabelForecast
from pacbound.cascade.labelling.session import LabelSession
from pacbound.cascade.labelling.walks import LabelProgress

__all__ = ["LabelForecast", "LabelProgress", "LabelSession"]
