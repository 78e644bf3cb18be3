"""Cascades: the thresholds at which fast models may answer for a slow one, for all rows or in every
group.
"""

from pacbound.claims.cascade.certificate import CascadeCertificate
from pacbound.claims.cascade.claim import CLAIM
from pacbound.claims.cascade.group import BestPossible, CascadeGroup, Unlabelled
from pacbound.claims.cascade.verb import certify_cascade, certify_declared

__all__ = [
    "CLAIM",
    "BestPossible",
    "CascadeCertificate",
    "CascadeGroup",
    "Unlabelled",
    "certify_cascade",
    "certify_declared",
]
