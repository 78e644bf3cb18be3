"""A monitor and files: rows are taken in from them in order, each file once, all of them or none;
and Prometheus reads from one what the monitor knows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from pacbound.errors import (
    InvalidTypeError,
    InvalidValueError,
    RepeatedSourceError,
)
from pacbound.monitor.bundle import BundleMonitor
from pacbound.monitor.monitor import CLUSTERS, Alarm, Monitor, candidates_of, rollouts_in
from pacbound.sources.batches import (
    Progress,
    TableFile,
    in_order,
    located,
    part_of,
    rows_at,
)
from pacbound.sources.fingerprints import fingerprinting
from pacbound.sources.notation import PLAIN, Notation
from pacbound.sources.opening import open_tables
from pacbound.sources.paths import Paths
from pacbound.tally.columns import Rows, wanted
from pacbound.watch import RowReading

_Samples = Iterable[tuple[dict[str, str], float]]
# What Prometheus is given: the type and the help of each family, and its samples.
_FAMILIES: Final[dict[str, tuple[str, str, Callable[[Monitor], _Samples]]]] = {
    "labels_total": ("counter", "Labels that the claim is about.", lambda m: [({}, m.labels)]),
    "outcomes_total": (
        "counter",
        "Labels by their outcome.",
        lambda m: [({"outcome": name}, count) for name, count in m.seen.items()],
    ),
    "alarms_total": ("counter", "Alarms that rang.", lambda m: [({}, len(m.alarms))]),
    "evidence": ("gauge", "Evidence against the claim.", lambda m: [({}, m.evidence)]),
    "limit": ("gauge", "Evidence at which the alarm rings.", lambda m: [({}, m.limit)]),
}


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
        raise InvalidTypeError.of(
            "monitor", monitor, "a Monitor. For a bundle pass one of its monitors"
        )
    if columns is not None and not isinstance(columns, Mapping):
        raise InvalidTypeError(
            f"columns={columns!r} is not a mapping: expected what each column is for, and its name."
        )
    reading = monitor.reading_of(**(columns or {}))
    reading.require_scores(notation.scale)
    reading = reading.written(monitor.certificate.scale_of(notation.scale))
    tables = open_tables(paths, notation)
    before = monitor.rows
    with monitor.all_or_nothing() as taken:
        rung: list[Alarm] = []
        with fingerprinting([table.path for table in tables], notation) as found:
            if CLUSTERS in reading.slots:
                alarms: Iterable[Alarm | None] = [_take_drawn(monitor, reading, tables, progress)]
            else:
                alarms = _take_in_order(monitor, reading, tables, progress)
            rung += [alarm for alarm in alarms if alarm is not None]
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
        if rollouts := rollouts_in(monitor.certificate, reading):
            rollouts.take_files(tables)
            rollouts.refuse_steps()
    return rung[0] if rung else None


def _take_in_order(
    monitor: Monitor, reading: RowReading, tables: Sequence[TableFile], progress: Progress | None
) -> Iterator[Alarm | None]:
    for path, batch in in_order(tables, wanted(reading.slots), progress):
        with located(path):
            yield monitor.update_rows(reading, Rows.of_batch(reading.slots, batch))


def _take_drawn(
    monitor: Monitor, reading: RowReading, tables: Sequence[TableFile], progress: Progress | None
) -> Alarm | None:
    """Take in the rows that are drawn from clusters. The files are read twice: a cluster may be
    spread over all of them.
    """
    candidates, given = candidates_of(monitor.certificate, reading, monitor.seed), 0
    for path, batch in in_order(tables, wanted(reading.slots), part_of(progress, 0.0, 0.5)):
        with located(path):
            candidates.take(Rows.of_batch(reading.slots, batch))
        given += batch.rows
    chosen, parts = candidates.unused(monitor.used), []
    reading = reading.without(CLUSTERS)
    columns = wanted(reading.slots)
    for path, batch in rows_at(chosen.places, tables, columns, part_of(progress, 0.5, 0.5)):
        with located(path):
            parts.append(Rows.of_batch(reading.slots, batch))
    return monitor.take_drawn(reading, parts, chosen, given=given)


def prometheus_text(monitor: Monitor | BundleMonitor) -> str:
    r"""What a monitor knows, in the text format of Prometheus.

    Write it whole or not at all, under a name that ends in `.prom`: `pacbound monitor --prometheus`
    does. Alert on an increase of `pacbound_monitor_alarms_total`.

    Parameters
    ----------
    monitor
        The monitor. Of the monitors of a bundle, each has the label `claim`.

    Returns
    -------
    str
        The lines, each ended.

    Raises
    ------
    InvalidTypeError
        If `monitor` is not one.

    Examples
    --------
    >>> from pacbound import certify_shield
    >>> certificate = certify_shield([0.1] * 500, [False] * 500, xi=0.02, delta=0.01)
    >>> monitor = Monitor(certificate, delta=1e-3)
    >>> print(prometheus_text(monitor).splitlines()[2].partition("{")[0])
    pacbound_monitor_labels_total
    """
    if not isinstance(monitor, Monitor | BundleMonitor):
        raise InvalidTypeError.of("monitor", monitor, "a Monitor or a BundleMonitor")
    lines: list[str] = []
    # Of one moment, while other threads wait.
    with monitor.all_or_nothing():
        named = _named(monitor)
        for name, (kind, text, samples) in _FAMILIES.items():
            full = f"pacbound_monitor_{name}"
            lines += [f"# HELP {full} {text}", f"# TYPE {full} {kind}"]
            for names, one in named:
                for more, value in samples(one):
                    lines.append(f"{full}{{{_labelled({**names, **more})}}} {_number(value)}")
    return "\n".join(lines) + "\n"


def _named(monitor: Monitor | BundleMonitor) -> list[tuple[dict[str, str], Monitor]]:
    """Each monitor, with the labels that tell it from others."""
    if isinstance(monitor, BundleMonitor):
        several = monitor.monitors.items()
        return [({"claim": name, **_names(one)}, one) for name, one in several]
    return [(_names(monitor), monitor)]


def _names(monitor: Monitor) -> dict[str, str]:
    return {
        "kind": monitor.certificate.kind,
        "certificate": monitor.certificate.claim_digest.removeprefix("sha256:")[:16],
        "false_alarms": monitor.false_alarms,
    }


def _labelled(names: dict[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in names.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return "+Inf" if value == math.inf else repr(value)
