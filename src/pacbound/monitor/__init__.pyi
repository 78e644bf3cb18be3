from pacbound.file_locks import locked as locked
from pacbound.monitor.bundle import BundleMonitor as BundleMonitor
from pacbound.monitor.files import prometheus_text as prometheus_text
from pacbound.monitor.files import update_from_files as update_from_files
from pacbound.monitor.monitor import Alarm as Alarm
from pacbound.monitor.monitor import Monitor as Monitor
from pacbound.monitor.shadow import Shadow as Shadow

__all__: list[str]
