"""Opening data as it lies: tables in files, read in batches and written in batches, and their fingerprints."""

from pacbound.sources.files import Batch, Progress, TableFile, file_fingerprint, open_table

__all__ = ["Batch", "Progress", "TableFile", "file_fingerprint", "open_table"]
