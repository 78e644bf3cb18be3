"""Batches: N known records answered by a fast and a slow model, so that at most m answers differ
from the slow model's, with as few calls as can be.
"""

from pacbound.cascade.batches.answering import answer_batch, answer_batch_async
from pacbound.cascade.batches.session import BatchResult, BatchSession

__all__ = ["BatchResult", "BatchSession", "answer_batch", "answer_batch_async"]
