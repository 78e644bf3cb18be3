"""A monitor as Prometheus reads it: text for the textfile collector of its node exporter."""

from __future__ import annotations

import math

from pacbound.errors import InvalidTypeError
from pacbound.monitor.bundle import BundleMonitor
from pacbound.monitor.monitor import Monitor

Sample = tuple[dict[str, str], float]


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
        raise InvalidTypeError(
            f"monitor is of type {type(monitor).__name__}: expected a Monitor or a BundleMonitor."
        )
    # Of one moment, while other threads wait.
    with monitor.all_or_nothing():
        return _text(monitor)


def _text(monitor: Monitor | BundleMonitor) -> str:
    parts = (
        [({}, monitor)]
        if isinstance(monitor, Monitor)
        else [({"claim": name}, one) for name, one in monitor.monitors.items()]
    )
    known = [({**of, **_names(one)}, one) for of, one in parts]
    families: list[tuple[str, str, str, list[Sample]]] = [
        (
            "labels_total",
            "counter",
            "Labels that the claim is about.",
            [(names, one.labels) for names, one in known],
        ),
        (
            "outcomes_total",
            "counter",
            "Labels by their outcome.",
            [
                ({**names, "outcome": name}, count)
                for names, one in known
                for name, count in one.seen.items()
            ],
        ),
        (
            "alarms_total",
            "counter",
            "Alarms that rang.",
            [(names, len(one.alarms)) for names, one in known],
        ),
        (
            "evidence",
            "gauge",
            "Evidence against the claim.",
            [(names, one.evidence) for names, one in known],
        ),
        (
            "limit",
            "gauge",
            "Evidence at which the alarm rings.",
            [(names, one.limit) for names, one in known],
        ),
    ]
    lines: list[str] = []
    for name, kind, text, samples in families:
        full = f"pacbound_monitor_{name}"
        lines += [f"# HELP {full} {text}", f"# TYPE {full} {kind}"]
        lines += [f"{full}{{{_labelled(of)}}} {_number(value)}" for of, value in samples]
    return "\n".join(lines) + "\n"


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
