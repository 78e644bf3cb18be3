"""What a certificate decides, as numbers by names that do not depend on how documents are written.

`given` is what was counted and asked for, `decided` is what follows from it: thresholds, bounds,
rates, and how many trials a refusal would take. Neither holds a sentence. The files beside this
module keep both, so that a change of documents, names or modules can be told from a change of a
decision.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tests.golden import cascades

from pacbound.claims.cascade import CascadeCertificate
from pacbound.claims.certificate import Certificate
from pacbound.claims.threshold_certificate import ReachedCertificate
from pacbound.documents import encode_float

HERE = Path(__file__).parent
PROSE = {"assumptions", "assumes", "reason"}
NAMES = {"kind", "procedure", "bounded"}


def given(certificate: Certificate) -> Any:
    """What was counted and asked for, without the names of kinds and procedures."""
    if certificate.inside:
        return {name: given(member) for name, member in certificate.inside.items()}
    if certificate.kind in _SCORED and certificate.values["scope"] == "top":
        return _scored_given(certificate)
    if isinstance(certificate, ReachedCertificate):
        return _plain(_walked(certificate.counted()))
    if isinstance(certificate, CascadeCertificate):
        return cascades.given(certificate)
    return _plain(_named_as_kept(certificate.counted()))


def _named_as_kept(counted: dict[str, Any]) -> dict[str, Any]:
    """What was counted under the names that the files have for it."""
    if counted["kind"] != "calibration" or "graded" in counted:
        return counted
    tables = [
        {
            "group": table["group"],
            "cells": table["counts"]["cells"],
            "trials": [sum(pair) for pair in zip(counts["wrong"], counts["right"], strict=True)],
            "successes": counts["right"],
        }
        for table in counted["tables"]
        for counts in [table["counts"]]
    ]
    return {**_without(counted, {"drawn"}), "tables": tables}


def decided(certificate: Certificate) -> Any:
    """What follows from it."""
    if certificate.inside:
        members = {name: decided(member) for name, member in certificate.inside.items()}
        claim = certificate.claim()
        kept = {name: claim[name] for name in ("certified", "delta", *_ENDS) if name in claim}
        return {**kept, "claims": members}
    if certificate.kind in _SCORED and certificate.values["scope"] == "top":
        return _scored_decided(certificate)
    if isinstance(certificate, ReachedCertificate):
        return _walk_decided(certificate)
    if isinstance(certificate, CascadeCertificate):
        return cascades.decided(certificate)
    claim = _without(certificate.claim(), {"drawn"})
    return _with_refusals(_plain(_remaining(claim, certificate.counted())), certificate)


def _walked(counted: Mapping[str, Any]) -> dict[str, Any]:
    """What was counted for a walk, each table with its columns side by side."""
    tables = [{**_without(table, {"counts"}), **table["counts"]} for table in counted["tables"]]
    return {**_without(counted, {"scope", "drawn", "tables"}), "tables": tables}


def _walk_decided(certificate: ReachedCertificate) -> dict[str, Any]:
    found, reasons = certificate.claim()["tables"], certificate.refusals
    return {
        "certified": certificate.certified,
        "tables": [
            {
                "threshold": table["threshold"],
                "claimed": table["claimed"],
                "refusal": {"needed": reasons[table["group"]].needed}
                if table["group"] in reasons
                else None,
            }
            for table in found
        ],
        "descriptive": {
            "coverage": certificate.coverage,
            "observed_error": certificate.observed_rate,
        },
    }


_ENDS = ("lowest", "highest")
_SCORED = {
    "recall": ("target", "allowed_misses"),
    "false-alarms": ("xi", "allowed_false_alarms"),
    "shield": ("xi", "allowed_misses"),
}
"""Kinds with one threshold on a score: what is asked for, and what is allowed."""


def _scored_given(certificate: Any) -> dict[str, Any]:
    rate, _ = _SCORED[certificate.kind]
    asked = {"n": certificate.n, rate: certificate.values[rate], "delta": certificate.delta}
    if certificate.asked_for.get("looks") is not None:
        asked["looks"] = list(certificate.looks)
    (counts,) = certificate.histograms
    if certificate.kind != "shield":
        names = ("negative", "positive")
        rows = {
            name: counts[own].tolist()
            for name, own in zip(names, certificate.outcomes, strict=True)
        }
        return {**asked, "counts": {"cells": counts["cells"].tolist(), **rows}}
    if certificate.rate != "all":
        asked["unsafe"] = certificate.number("unsafe")
    if certificate.horizon is not None:
        asked["horizon"] = certificate.horizon
    # The search goes up to the first cell with more unsafe rollouts than may be missed.
    hit = counts["unsafe"] > 0
    cells, misses = counts["cells"][hit], np.cumsum(counts["unsafe"][hit])
    end = int(np.searchsorted(misses, certificate.allowed, side="right")) + 1
    return {**asked, "search": {"cells": cells[:end].tolist(), "misses": misses[:end].tolist()}}


def _scored_decided(certificate: Any) -> dict[str, Any]:
    _, allowed = _SCORED[certificate.kind]
    return {
        "certified": certificate.certified,
        **({} if certificate.look is None else {"look": certificate.look}),
        "threshold": encode_float(certificate.threshold),
        allowed: certificate.allowed,
        "descriptive": _seen(certificate),
        "refusal": _needed(certificate),
    }


def _seen(certificate: Any) -> dict[str, Any]:
    """What was seen at the threshold, under the names that the files have for it."""
    if certificate.kind == "shield":
        rate = certificate.observed_rate or 0.0
        return {"observed_miss_rate": rate, "interventions": certificate.acted}
    found = certificate.share(certificate.outcomes[1])
    if certificate.kind == "recall":
        return {"observed_recall": found, "flag_rate": certificate.coverage}
    return {"observed_false_alarm_rate": certificate.observed_rate, "observed_recall": found}


def _with_refusals(found: dict[str, Any], certificate: Any) -> dict[str, Any]:
    """The same with how many trials each refusal would take, which follows from the counts."""
    for key in ("tables", "groups"):
        parts = getattr(certificate, key, ())
        parts = list(parts.values() if isinstance(parts, Mapping) else parts)
        if key in found and parts and all(hasattr(part, "refusal") for part in parts):
            pairs = zip(found[key], parts, strict=True)
            found[key] = [{**table, "refusal": _needed(part)} for table, part in pairs]
    is_one = hasattr(certificate, "refusal") and "tables" not in found
    return {**found, "refusal": _needed(certificate)} if is_one else found


def _needed(part: Any) -> dict[str, int | None] | None:
    return None if part.refusal is None else {"needed": part.refusal.needed}


def read(name: str) -> dict[str, Any]:
    """The snapshots of a file beside this module, by their names."""
    found: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text())
    return found


def write(name: str, snapshots: Mapping[str, Any]) -> None:
    """Write them, one to a line, so that a change is seen where it is."""
    lines = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(snapshots.items()))
    (HERE / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def same(found: Any, kept: Any) -> bool:
    """Whether two snapshots are equal: to the last digit, but for numbers that are no fractions of
    a grid. Another version of SciPy gives another last digit to those.
    """
    if isinstance(found, dict) and isinstance(kept, dict):
        return found.keys() == kept.keys() and all(same(found[key], kept[key]) for key in kept)
    if isinstance(found, list) and isinstance(kept, list):
        return len(found) == len(kept) and all(map(same, found, kept))
    if isinstance(found, float) and isinstance(kept, float) and not (kept * 2**16).is_integer():
        return abs(found - kept) <= 1e-9 * abs(kept)
    return type(found) is type(kept) and bool(found == kept)


def _without(part: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key not in names}


def _plain(part: Any) -> Any:
    """Without sentences and names; a refusal is then how many trials it would take."""
    if isinstance(part, dict):
        return {key: _plain(value) for key, value in _without(part, PROSE | NAMES).items()}
    return [_plain(value) for value in part] if isinstance(part, list) else part


def _remaining(claim: Any, counted: Any) -> Any:
    """What of the claim was not counted; lists of parts keep the names of their groups."""
    if isinstance(claim, dict) and isinstance(counted, dict):
        left = {
            key: _remaining(value, counted.get(key))
            for key, value in claim.items()
            if key not in counted or _has_parts(value)
        }
        return {key: value for key, value in left.items() if not _is_spent(value)}
    if _has_parts(claim) and isinstance(counted, list):
        return [_remaining(*pair) for pair in zip(claim, counted, strict=True)]
    return claim


def _has_parts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _is_spent(value: Any) -> bool:
    """Whether all of a list of parts was counted."""
    return _has_parts(value) and not any(value)
