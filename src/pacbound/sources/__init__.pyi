from pacbound.sources.batches import Batch as Batch
from pacbound.sources.batches import Engine as Engine
from pacbound.sources.batches import Progress as Progress
from pacbound.sources.batches import TableFile as TableFile
from pacbound.sources.batches import Wanted as Wanted
from pacbound.sources.fingerprints import file_fingerprint as file_fingerprint
from pacbound.sources.notation import PLAIN as PLAIN
from pacbound.sources.notation import Notation as Notation
from pacbound.sources.opening import Opened as Opened
from pacbound.sources.opening import open_table as open_table
from pacbound.sources.opening import open_tables as open_tables
from pacbound.sources.opening import opened as opened
from pacbound.sources.paths import Paths as Paths

__all__: list[str]
