"""Planning a sample from a pilot: how many rows and labels, and what they will give.

Everything here is an estimate. What is guaranteed is what the certifying functions say once the
sample is there.
"""

from pacbound.planning.pilot import plan_from_pilot
from pacbound.planning.plan import PilotPlan, PlanPoint

__all__ = ["PilotPlan", "PlanPoint", "plan_from_pilot"]
