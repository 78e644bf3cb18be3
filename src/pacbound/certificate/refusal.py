"""A refusal of a certificate: its reason in words, and what it would take.

A document holds neither. Both follow from the counts, so that they are computed again when a
certificate is read, and nobody can put other words in their place.
"""

from __future__ import annotations

from typing import Final

UNEXPLAINED: Final = object()
"""The refusal of a certificate that was read, until its reasons are computed again; and after
that, if it takes long, or if the counts do not imply a refusal at all."""
