"""A monitor and files: their rows in order, each file once, all of them or none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pacbound.errors import InvalidTypeError, InvalidValueError, RepeatedSourceError
from pacbound.monitor.monitor import Alarm, Monitor
from pacbound.sources import PLAIN, Notation, Paths, Progress, Wanted, open_tables
from pacbound.sources.fingerprints import fingerprinting
from pacbound.sources.parts import in_order
from pacbound.tally.intake import require_mapping
from pacbound.tally.rows import Rows


def update_from_files(
    monitor: Monitor,
    paths: Paths,
    *,
    columns: Mapping[str, Any],
    notation: Notation = PLAIN,
    progress: Progress | None = None,
) -> Alarm | None:
    """Take in the rows of files, in order: the files as they are named, globs and folders sorted.

    The order matters: it must be that in which the rows came. All rows of all files are taken in,
    or, if one cannot be, none. A file with the same bytes as one that was taken in before is
    refused.

    Parameters
    ----------
    monitor
        The monitor.
    paths
        A file, a glob, a folder, or several of these.
    columns
        The name of each column, by what `Monitor.update` calls it.
    notation
        How the files are written.
    progress
        Called with the share that is done, from 0 to 1.

    Returns
    -------
    Alarm or None
        The first alarm that rang among these rows; on the first clock one that rang before, too.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If there are no rows, or a value cannot be what it should be; the message names the file.
    RepeatedSourceError
        If the rows of a file were taken in before.

    Examples
    --------
    >>> import numpy as np
    >>> from pacbound import certify_shield
    >>> np.savez("monday.npz", unsafe=[False] * 99 + [True])
    >>> certificate = certify_shield([0.1] * 500, [False] * 500, xi=0.02, delta=0.01)
    >>> monitor = Monitor(certificate, delta=1e-3)
    >>> update_from_files(monitor, "monday.npz", columns={"unsafe": "unsafe"}) is None
    True
    >>> monitor.labels
    100
    """
    if not isinstance(monitor, Monitor):
        raise InvalidTypeError(
            f"monitor is of type {type(monitor).__name__}: expected a Monitor. For a bundle pass "
            "one of its monitors."
        )
    require_mapping(columns)
    reading = monitor.reading_of(**(columns or {})).written(notation.scale)
    wanted = {key: Wanted(slot.name, slot.kind) for key, slot in reading.slots.items()}
    tables = open_tables(paths, notation)
    before = monitor.rows
    with monitor.all_or_nothing() as taken:
        rung: list[Alarm] = []
        with fingerprinting([table.path for table in tables], notation) as found:
            for path, batch in in_order(tables, wanted, progress):
                try:
                    alarm = monitor.update_rows(reading, Rows.of_batch(reading.slots, batch))
                except (InvalidTypeError, InvalidValueError) as error:
                    raise type(error)(f"{path}: {error}") from None
                rung += [] if alarm is None else [alarm]
            fingerprints = [fingerprint.result() for fingerprint in found]
        for table, fingerprint in zip(tables, fingerprints, strict=True):
            if fingerprint in (*monitor.sources, *taken):
                raise RepeatedSourceError(
                    f"The rows of {table.path} were taken in before: the same labels twice void "
                    "the promise. Name only what is new. Where other rows only look the same, add "
                    "a column that tells them apart, such as their time."
                )
            taken.append(fingerprint)
        if monitor.rows == before:
            raise InvalidValueError(f"{tables[0].path}: no rows, so there is nothing to take in.")
    return rung[0] if rung else None
