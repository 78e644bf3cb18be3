"""Opening data as it lies: tables in files, read in batches or inside DuckDB and written in
batches, and their fingerprints.
"""

from pacbound.sources.files import Batch, Progress, TableFile, Wanted, open_table, open_tables
from pacbound.sources.fingerprints import file_fingerprint, fingerprinting
from pacbound.sources.paths import Paths

__all__ = [
    "Batch",
    "Paths",
    "Progress",
    "TableFile",
    "Wanted",
    "file_fingerprint",
    "fingerprinting",
    "open_table",
    "open_tables",
]
