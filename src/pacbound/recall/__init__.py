"""Recall: flag enough rows that nearly all positives are among them."""

from pacbound.recall.certify import certify_recall

__all__ = ["certify_recall"]
