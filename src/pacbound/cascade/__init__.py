"""Cascades: fast models that answer for a slow one, certified to lose at most so much accuracy, and
routing over any models.
"""

from pacbound.cascade.async_routing import AsyncCascade
from pacbound.cascade.batches import (
    BatchResult,
    BatchSession,
    answer_batch,
    answer_batch_async,
)
from pacbound.cascade.cost import CostBound, TradeOff, certified_cost, trade_off
from pacbound.cascade.design import CascadeDesign, design_cascade
from pacbound.cascade.design_search import Tried
from pacbound.cascade.labelling import LabelForecast, LabelProgress, LabelSession
from pacbound.cascade.routing import Cascade, CascadeResult, CascadeStatistics, Routed
from pacbound.cascade.stages import Answer, Answers

__all__ = [
    "Answer",
    "Answers",
    "AsyncCascade",
    "BatchResult",
    "BatchSession",
    "Cascade",
    "CascadeDesign",
    "CascadeResult",
    "CascadeStatistics",
    "CostBound",
    "LabelForecast",
    "LabelProgress",
    "LabelSession",
    "Routed",
    "TradeOff",
    "Tried",
    "answer_batch",
    "answer_batch_async",
    "certified_cost",
    "design_cascade",
    "trade_off",
]
