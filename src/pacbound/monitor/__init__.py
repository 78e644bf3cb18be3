"""Monitors: an alarm that rings once the claim of a certificate no longer holds in use.

A monitor needs labels. It is not a detector of drift in inputs.
"""

from pacbound.file_locks import locked
from pacbound.monitor.bundle import BundleMonitor
from pacbound.monitor.files import prometheus_text, update_from_files
from pacbound.monitor.monitor import Alarm, Monitor
from pacbound.monitor.shadow import Shadow, ShadowPlan, plan_shadow

__all__ = [
    "Alarm",
    "BundleMonitor",
    "Monitor",
    "Shadow",
    "ShadowPlan",
    "locked",
    "plan_shadow",
    "prometheus_text",
    "update_from_files",
]
