"""A warning score on a hospital's table in which patients have several rows, with scikit-learn.

    python examples/hospital_table.py --folder hospital

writes the certificates and a page, report.html, and takes a few seconds. It needs
`pip install "pacbound[sklearn,report]"`. The cells below, each after a line `# %%`, can be run one
after the other in an editor that knows them, or opened as a notebook with Jupytext.

**The cohort is simulated.** No table of real patients may be shipped; `cohort` makes one whose
columns look like those of a ward: a row for each measurement, several rows for each patient, and
rows of one patient that resemble each other. To use your own, replace `cohort` by a function that
returns the same columns.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from pacbound import Monitor, calibrate, certify_recall, load_certificate
from pacbound.report import write_report

Columns = dict[str, NDArray[Any]]

MEASURED = ("age", "heart_rate", "respiratory_rate", "lactate", "systolic")
DRAW = 4026340457416906
"""Draws one row of each patient: a number that was itself drawn at random, once, before anybody saw
the rows. Left out, the operating system draws one, and each run of this file draws other rows."""
HEALTHY = -1.6
"""How ill patients are on average, on the scale of the simulation."""

# %% The table


def cohort(patients: int, seed: int, *, masked: float = 0.0) -> Columns:
    """Simulated rows of a ward: `patients` patients with 1 to 8 measurements each.

    `deteriorated` is what happened within a day of the measurement. Rows of one patient share an
    illness, so they are not independent. `masked` weakens all signs of an illness, as a new drug
    might: the model was not trained for it.
    """
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(patients), rng.integers(1, 9, size=patients))
    rows = len(patient)
    age = rng.normal(64, 14, size=patients).clip(18, 99)[patient]
    illness = rng.normal(HEALTHY, 1.2, size=patients)[patient] + 0.02 * (age - 64)
    today = illness + rng.normal(0, 0.5, size=rows)
    sign = today - masked * (today - HEALTHY)
    deteriorated = rng.random(rows) < 1 / (1 + np.exp(-4.0 * today))
    return {
        "patient": np.char.add(f"ward-{seed}-", patient.astype(str)),
        "age": age,
        "heart_rate": 78 + 16 * sign + rng.normal(0, 7, size=rows),
        "respiratory_rate": 16 + 4 * sign + rng.normal(0, 1.5, size=rows),
        "lactate": np.exp(0.2 + 0.45 * sign + rng.normal(0, 0.15, size=rows)),
        "systolic": 124 - 9 * sign + rng.normal(0, 13, size=rows),
        "deteriorated": deteriorated,
    }


def features(table: Columns) -> NDArray[np.float64]:
    """What the model sees."""
    return np.column_stack([table[name] for name in MEASURED])


# %% The model


def trained(table: Columns) -> HistGradientBoostingClassifier:
    """A model that was trained on these patients, and on none of those that certify it."""
    model = HistGradientBoostingClassifier(max_iter=80, max_leaf_nodes=15, random_state=0)
    return model.fit(features(table), table["deteriorated"])


def score(model: HistGradientBoostingClassifier, table: Columns) -> NDArray[np.float64]:
    """The model's probability of a deterioration."""
    probabilities: NDArray[np.float64] = model.predict_proba(features(table))[:, 1]
    return probabilities


# %% From patients to certificates


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where certificates go")
    folder = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)

    # Three groups of patients, none of whom is in two of them. A split by rows would put one
    # patient on both sides, and the certificate would speak of patients that the model knows.
    model = trained(cohort(3_000, seed=1))
    held_out = cohort(4_000, seed=2)
    scores = score(model, held_out)
    print(f"{len(scores):,} rows of 4,000 patients certify; they had no part in training.")
    print("Each of two claims fails with probability at most 2.5 %: both hold with 95 %.")

    # How many deteriorations does a warning find? One positive row counts for each patient who has
    # any: 20 rows of one patient are not 20 independent cases.
    warning = certify_recall(
        scores,
        held_out["deteriorated"],
        target=0.9,
        delta=0.025,
        clusters=held_out["patient"],
        seed=DRAW,
        about={"model": "gradient boosting on five measurements", "cohort": "simulated"},
    )
    print(f"\n{warning}")
    warning.save(folder / "warning.json")

    # How often is a row with this score followed by a deterioration?
    chances = calibrate(
        scores,
        held_out["deteriorated"],
        delta=0.025,
        n_bins=5,
        clusters=held_out["patient"],
        seed=DRAW,
        about={"model": "gradient boosting on five measurements", "cohort": "simulated"},
    )
    print(f"\n{chances}")
    chances.save(folder / "chances.json")

    # A page for the ward's meeting, and what an auditor does with the files.
    write_report([folder / "warning.json", folder / "chances.json"], folder / "report.html")
    for name in ("warning.json", "chances.json"):
        print(f"{name}: {load_certificate(folder / name).verify()}")

    # In use: the alarm stays silent in a month like the others, and rings once a new drug masks the
    # signs.
    monitor = Monitor(warning, delta=1e-3)
    for seed, masked in ((3, 0.0), (4, 0.5), (5, 0.5)):
        month = cohort(2_000, seed=seed, masked=masked)
        alarm = monitor.update(
            {
                "score": score(model, month),
                "positive": month["deteriorated"],
                "clusters": month["patient"],
            }
        )
        print(f"\nMonth {seed - 2}: {alarm or 'no alarm'}")
        if alarm:
            break
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
