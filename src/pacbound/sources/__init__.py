"""Sources: data as it lies, opened and delivered. They know nothing of what rows are counted for.

A source delivers rows that stay in an engine, as a frame, or rows in batches, and names files by
what is in them.
"""

from pacbound.sources.batches import Batch, Engine, Progress, TableFile, Wanted
from pacbound.sources.fingerprints import file_fingerprint
from pacbound.sources.notation import PLAIN, Notation
from pacbound.sources.opening import Opened, open_table, open_tables, opened
from pacbound.sources.paths import Paths

__all__ = [
    "PLAIN",
    "Batch",
    "Engine",
    "Notation",
    "Opened",
    "Paths",
    "Progress",
    "TableFile",
    "Wanted",
    "file_fingerprint",
    "open_table",
    "open_tables",
    "opened",
]
