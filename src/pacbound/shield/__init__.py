"""Shields: a backup policy takes over before it is too late, certified to leave at most so many rollouts unsafe."""

from pacbound.shield.certify import certify_shield
from pacbound.shield.policy import Shield, VectorShield

__all__ = [
    "Shield",
    "VectorShield",
    "certify_shield",
]
