"""The tables of the exhibit, in Markdown."""

from __future__ import annotations

from typing import Any

from experiments.record import p_text
from experiments.safe_planning.ablation import LEVEL
from experiments.safe_planning.methods import CERTIFIED, METHODS

PANELS = {
    "xi": "Over xi, at delta = {delta:g} and n = {n:,}",
    "delta": "Over delta, at xi = {xi:g} and n = {n:,}",
    "n": "Over n, at xi = {xi:g} and delta = {delta:g}",
}


def markdown(record: dict[str, Any]) -> str:
    lines = ["# Safe planning", "", *section("together", together(record))]
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


def together(record: dict[str, Any]) -> list[str]:
    """All cells of all tasks, a line for each method."""
    cells: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {method: {} for method in METHODS}
    for name, part in record["tasks"].items():
        for row in part["ablation"]:
            # The default is in three panels, and is one cell.
            cells[row["method"]][name, row["xi"], row["delta"], row["n"]] = row
    total = len(cells["exact"])
    lines = [
        (
            f"All {total} cells of {len(record['tasks'])} tasks. Cells are not independent, so "
            "their tests are combined by a union bound: the smallest p-value times the cells is "
            f'a p-value for "delta is kept in every cell", and a method that keeps it is marked in '
            f"any cell with probability at most {total} x {LEVEL:g} = {total * LEVEL:.2g}."
        ),
        "",
        "| method | guarantee | cells that violate | where | smallest p-value, times the cells |",
        "| --- | --- | --- | --- | --- |",
    ]
    for method, called in METHODS.items():
        rows = cells[method]
        marked = [key for key, row in rows.items() if row["exceeds_delta"]]
        smallest = min(row["p_value"] for row in rows.values())
        lines.append(
            f"| {called} | {'proven' if method in CERTIFIED else 'none'} | {len(marked)} of "
            f"{len(rows)} | {where(marked, len(rows))} | "
            f"{p_text(min(1.0, smallest * len(rows)))} |"
        )
    return [*lines, ""]


def where(marked: list[tuple[Any, ...]], cells: int) -> str:
    """The tasks and the values of xi."""
    if len(marked) in (0, cells):
        return "everywhere" if marked else "nowhere"
    tasks = dict.fromkeys(task for task, *_ in marked)
    return "; ".join(
        f"{task}: xi = "
        + ", ".join(f"{xi:g}" for xi in dict.fromkeys(key[1] for key in marked if key[0] == task))
        for task in tasks
    )


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
            f"With the shield on, {alone['rollouts']:,} new rollouts for each threshold. Without a "
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
            f"{p_text(row['p_value'])} |"
        )
    return [*lines, ""]


def ablation(rows: list[dict[str, Any]], panel: str) -> list[str]:
    """One panel: a line for each setting and method."""
    lines = [
        f"| {panel} | method | safety | success | draws that violate | p-value |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        verdict = p_text(row["p_value"]) + (", **violates**" if row["exceeds_delta"] else "")
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
