"""A cascade certificate as the kept snapshots have it: one without groups has no list of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pacbound.claims.cascade import CascadeCertificate, CascadeGroup
from pacbound.documents import encode_float


def given(certificate: CascadeCertificate) -> dict[str, Any]:
    """What was counted and asked for."""
    counted = certificate.counted()
    tables = [_counted(table) for table in counted["tables"]]
    kept = {name: counted[name] for name in ("n", "xi", "delta", "costs")}
    if not certificate.groups:
        fold = {"declared": counted["declared"]} if "declared" in counted else {}
        return {**kept, **_without(tables[0], "group", "n"), **fold}
    return {**kept, "scope": counted["scope"], "groups": tables}


def decided(certificate: CascadeCertificate) -> dict[str, Any]:
    """What follows from it."""
    groups = [_decided(group) for group in certificate.tables]
    if not certificate.groups:
        own = {"certified": certificate.certified, "refusal": _needed(certificate.refusal)}
        return {**groups[0], **own}
    return {
        "certified": certificate.certified,
        "groups": groups,
        "refusal": _needed(certificate.refusal),
        "descriptive": _seen(certificate),
    }


def _counted(table: Mapping[str, Any]) -> dict[str, Any]:
    """Rows without a label were told of all walks where a label is missing, also if none exits."""
    if table["labels"] is None:
        return _without(table, "labels")
    walks = []
    for walk in table["walks"]:
        zeros = [[0] * len(row) for row in walk["cells"]]
        walks.append({"unlabelled_added": zeros, **walk})
    return {**table, "walks": walks}


def _decided(group: CascadeGroup) -> dict[str, Any]:
    best = {}
    if group.best is not None:
        best = {
            "best_possible": {
                "thresholds": _written(group.best["thresholds"]),
                "chosen": group.best["chosen"],
                "exits": list(group.best["exits"]),
                "expected_cost": group.best_possible.expected_cost,
            }
        }
    return {
        "certified": group.certified,
        "thresholds": _written(group.thresholds.tolist()),
        "chosen": group.chosen,
        "refusal": _needed(group.refusal),
        "descriptive": {**_seen(group), **best},
    }


def _seen(part: Any) -> dict[str, Any]:
    return {
        "exit_rates": part.exit_rates.tolist(),
        "observed_error_increase": part.observed_error_increase,
        "expected_cost": part.expected_cost,
    }


def _written(thresholds: Any) -> list[Any]:
    return [encode_float(value) for value in thresholds]


def _needed(refusal: Any) -> dict[str, Any] | None:
    return None if refusal is None else {"needed": refusal.needed}


def _without(part: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key not in names}
