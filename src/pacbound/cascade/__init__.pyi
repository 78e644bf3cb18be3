from pacbound.cascade.async_routing import AsyncCascade as AsyncCascade
from pacbound.cascade.batch import BatchStep as BatchStep
from pacbound.cascade.batch import answer_batch as answer_batch
from pacbound.cascade.batch import answer_batch_async as answer_batch_async
from pacbound.cascade.batch import batch_step as batch_step
from pacbound.cascade.cost import CostBound as CostBound
from pacbound.cascade.cost import certified_cost as certified_cost
from pacbound.cascade.design import CascadeDesign as CascadeDesign
from pacbound.cascade.design import design_cascade as design_cascade
from pacbound.cascade.design_search import Tried as Tried
from pacbound.cascade.routing import Cascade as Cascade
from pacbound.cascade.routing import CascadeResult as CascadeResult
from pacbound.cascade.routing import CascadeStatistics as CascadeStatistics
from pacbound.cascade.routing import Failure as Failure
from pacbound.cascade.routing import Routed as Routed
from pacbound.cascade.stages import Answer as Answer
from pacbound.cascade.stages import Answers as Answers
from pacbound.claims.cascade import rows_to_label as rows_to_label

__all__: list[str]
