"""The tables of the exhibit, in Markdown."""

from __future__ import annotations

from typing import Any

from experiments.safe_planning.ablation import LEVEL
from experiments.safe_planning.methods import METHODS

PANELS = {
    "xi": "Over xi, at delta = {delta:g} and n = {n:,}",
    "delta": "Over delta, at xi = {xi:g} and n = {n:,}",
    "n": "Over n, at xi = {xi:g} and delta = {delta:g}",
}


def markdown(record: dict[str, Any]) -> str:
    lines = ["# Safe planning", ""]
    for name, part in record["tasks"].items():
        lines += [f"## {capital(part['title'])}", "", about(part), ""]
        if name in record["drives"]:
            lines += section(f"{name}-drives", drives(record["drives"][name]))
        lines += [
            (
                f"Ablations: {record['repeats']:,} draws for each cell. A draw violates if its "
                "threshold misses more than xi of the rollouts that it was drawn from. The last "
                "column is the probability of so many violations, or more, if delta is kept; below "
                f"{LEVEL:g} the method has violated more often than delta allows."
            ),
            "",
        ]
        for panel, title in PANELS.items():
            rows = [row for row in part["ablation"] if row["panel"] == panel]
            lines += [f"### {title.format(**rows[0])}", ""]
            lines += section(f"{name}-{panel}", ablation(rows, panel))
    lines += [f"Made by `{record['command']}`.", ""]
    return "\n".join(lines)


def about(part: dict[str, Any]) -> str:
    return (
        f"{part['rollouts']:,} rollouts of the policy without a shield, each from a seed of its "
        f"own; {part['unsafe'] / part['rollouts']:.1%} have an un-recoverable state, "
        f"{part['success'] / part['rollouts']:.1%} reach the goal without one."
    )


def drives(record: dict[str, Any]) -> list[str]:
    """What the shields did in new rooms."""
    alone = record["policy_alone"]
    lines = [
        (
            f"With the shield on, {alone['rollouts']:,} new rooms for each threshold. Without a "
            f"shield {alone['unsafe'] / alone['rollouts']:.1%} are unsafe and "
            f"{alone['success'] / alone['rollouts']:.1%} reach the goal."
        ),
        "",
        "| xi | method | threshold | safe | success | p-value of unsafe <= xi |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in record["results"]:
        total = row["rollouts"]
        value = row["threshold"]
        shown = f"{value:.4f}" if isinstance(value, float) else str(value)
        lines.append(
            f"| {row['xi']:g} | {METHODS[row['method']]} | {shown} | "
            f"{1 - row['unsafe'] / total:.1%} | {row['success'] / total:.1%} | "
            f"{row['p_value']:.3g} |"
        )
    return [*lines, ""]


def ablation(rows: list[dict[str, Any]], panel: str) -> list[str]:
    """One panel: a line for each setting and method."""
    lines = [
        f"| {panel} | method | safety | success | draws that violate | p-value |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        verdict = f"{row['p_value']:.3g}" + (", **violates**" if row["exceeds_delta"] else "")
        lines.append(
            f"| {row[panel]:{',' if panel == 'n' else 'g'}} | {METHODS[row['method']]} | "
            f"{row['safety'][0]:.2%} | {row['success'][0]:.2%} | "
            f"{row['violations']} of {row['draws']} | {verdict} |"
        )
    return [*lines, ""]


def section(name: str, lines: list[str]) -> list[str]:
    """Lines that the documentation takes over by this name."""
    return [f"<!-- --8<-- [start:{name}] -->", "", *lines, f"<!-- --8<-- [end:{name}] -->", ""]


def capital(text: str) -> str:
    return text[0].upper() + text[1:]
