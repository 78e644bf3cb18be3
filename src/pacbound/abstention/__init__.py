"""Abstention: answer only where the answers are certified to be right often enough.

`SelectiveClassifier` needs scikit-learn, and is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from pacbound.claims.abstention import certify_abstention
from pacbound.lazy_names import lazy_names

if TYPE_CHECKING:
    from pacbound.abstention.estimators import SelectiveClassifier

__all__ = ["SelectiveClassifier", "certify_abstention"]

__getattr__, __dir__ = lazy_names(
    __name__, {"SelectiveClassifier": "pacbound.abstention.estimators"}
)
