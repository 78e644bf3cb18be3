"""A monitor as Prometheus reads it: text for the textfile collector of its node exporter."""

from __future__ import annotations

import math

from pacbound.monitor.monitor import Monitor


def prometheus_text(monitor: Monitor) -> str:
    r"""What a monitor knows, in the text format of Prometheus.

    Write it whole or not at all, under a name that ends in `.prom`: `pacbound monitor --prometheus`
    does. Alert on an increase of `pacbound_monitor_alarms_total`.

    Parameters
    ----------
    monitor
        The monitor.

    Returns
    -------
    str
        The lines, each ended.

    Examples
    --------
    >>> from pacbound import certify_shield
    >>> certificate = certify_shield([0.1] * 500, [False] * 500, xi=0.02, delta=0.01)
    >>> monitor = Monitor(certificate, delta=1e-3)
    >>> print(prometheus_text(monitor).splitlines()[2].partition("{")[0])
    pacbound_monitor_labels_total
    """
    names = {
        "kind": monitor.certificate.kind,
        "certificate": monitor.certificate.claim_digest.removeprefix("sha256:")[:16],
        "false_alarms": monitor.false_alarms,
    }
    outcomes: list[tuple[dict[str, str], float]] = [
        ({**names, "outcome": name}, count) for name, count in monitor.seen.items()
    ]
    families: list[tuple[str, str, str, list[tuple[dict[str, str], float]]]] = [
        ("labels_total", "counter", "Labels that the claim is about.", [(names, monitor.labels)]),
        ("outcomes_total", "counter", "Labels by their outcome.", outcomes),
        ("alarms_total", "counter", "Alarms that rang.", [(names, len(monitor.alarms))]),
        ("evidence", "gauge", "Evidence against the claim.", [(names, monitor.evidence)]),
        ("limit", "gauge", "Evidence at which the alarm rings.", [(names, monitor.limit)]),
    ]
    lines: list[str] = []
    for name, kind, text, samples in families:
        full = f"pacbound_monitor_{name}"
        lines += [f"# HELP {full} {text}", f"# TYPE {full} {kind}"]
        lines += [f"{full}{{{_labelled(of)}}} {_number(value)}" for of, value in samples]
    return "\n".join(lines) + "\n"


def _labelled(names: dict[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in names.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return "+Inf" if value == math.inf else repr(value)
