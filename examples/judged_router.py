"""Route between two language models whose answers a judge grades, and check the judge by people.

    python examples/judged_router.py --folder router

writes the certificates of the judge and of the router, and a page about both, and takes a few
seconds. It needs `pip install "pacbound[report]"` and no server: **models, judge and people are
simulated**, by the functions of the first cell. To use your own, replace them. The cells, each
after a line `# %%`, can be run one after the other in an editor that knows them, or opened as a
notebook with Jupytext. `llm_router.py` beside this file asks real servers.

The steps: may the judge be trusted, by people's labels of some answers; from which confidence on
may the small model answer, as the judge grades; route; and watch a sample of the traffic.
"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound import AsyncCascade, Monitor, certify_cascade, certify_judge
from pacbound.cascade import Answer
from pacbound.claims.calibration_certificate import CalibrationCertificate
from pacbound.claims.cascade import CascadeCertificate
from pacbound.report import write_report

Array = NDArray[Any]
JUDGE = "judge-model, simulated"
SCALE = (1, 5)
PASSES = 4
"""The lowest grade of an answer that may be sent."""

# %% Questions, two models, a judge and people, all simulated


@dataclass(frozen=True)
class Questions:
    """Questions with the answers of both models: how good each truly is, from 1 to 5, and how sure
    the small model was.
    """

    confidence: Array
    truly: Array
    """(questions, 2): the small model's answer, then the large one's."""


def asked(questions: int, seed: int, *, harder: float = 0.0) -> Questions:
    """Simulated traffic; `harder` is the share of questions that the small model is sure of and
    answers badly, as after a change of its prompt.
    """
    rng = np.random.default_rng(seed)
    confidence = rng.beta(4, 1.5, size=questions)
    large = rng.choice([3, 4, 5], p=[0.1, 0.3, 0.6], size=questions)
    fails = rng.random(questions) < np.maximum(0.7 * (1 - confidence), harder)
    small = np.where(fails, np.maximum(1, large - rng.integers(1, 4, size=questions)), large)
    return Questions(confidence, np.column_stack([small, large]))


def graded(answers: Array, seed: int) -> Array:
    """The judge's grades: mostly right, sometimes a grade off, with a weakness for one step up."""
    rng = np.random.default_rng([seed, 1])
    off = rng.choice([-1, 0, 1], p=[0.06, 0.82, 0.12], size=answers.shape)
    grades: Array = np.clip(answers + off, *SCALE)
    return grades


# %% The four steps


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where certificates go")
    folder = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)

    judged_by_people(folder / "judge.json")
    certificate = certified_router(folder / "router.json")
    write_report([folder / "judge.json", folder / "router.json"], folder / "report.html")
    asyncio.run(routed(certificate))
    watched(certificate)
    return 0


def judged_by_people(path: Path) -> None:
    """People label 1,500 answers as pass or fail. How often do they agree with the judge?"""
    answers = asked(1_500, seed=1).truly[:, 0]
    verdict = np.where(graded(answers, seed=1) >= PASSES, "pass", "fail")
    label = np.where(answers >= PASSES, "pass", "fail")
    judge = certify_judge(verdict, label, delta=0.05, about={"judge": JUDGE})
    verdicts = judge["verdicts"]
    assert isinstance(verdicts, CalibrationCertificate)
    for name, bins in verdicts.tables.items():
        low, high = bins.lower[0], bins.upper[0]
        print(
            f"Of all answers that the judge calls {name}, people agree on {low:.0%} to {high:.0%}."
        )
    judge.save(path)


def certified_router(path: Path) -> CascadeCertificate:
    """The judge grades both models' answers to 6,000 questions. From which confidence on may the
    small model answer, if the mean grade may fall by at most 3 % of the scale?
    """
    sample = asked(6_000, seed=2)
    certificate = certify_cascade(
        sample.confidence,
        quality=graded(sample.truly, seed=2),
        quality_scale=SCALE,
        graded_by=JUDGE,
        costs=[1, 20],
        xi=0.03,
        delta=0.01,
    )
    print(f"\n{certificate}")
    certificate.save(path)
    return certificate


async def routed(certificate: CascadeCertificate) -> None:
    """Send 1,000 new questions through the router."""
    new = asked(1_000, seed=3)

    async def small(question: int) -> Answer:
        return Answer(f"small model on {question}", float(new.confidence[question]))

    async def large(question: int) -> Answer:
        return Answer(f"large model on {question}", 1.0)

    run = await AsyncCascade([small, large], certificate).run(range(1_000))
    share = np.mean(run.exits == 0)
    print(f"\nThe small model answered {share:.0%} of {len(run.predictions):,} questions.")


def watched(certificate: CascadeCertificate) -> None:
    """Both models answer a sample of the traffic that was drawn beforehand, and the judge grades
    both: the alarm rings some time after the small model's prompt was changed for the worse.
    """
    monitor = Monitor(certificate, delta=1e-3)
    for week, harder in enumerate((0.0, 0.0, 0.25, 0.25, 0.25, 0.25), start=1):
        traffic = asked(1_000, seed=100 + week, harder=harder)
        seen = {"confidence": traffic.confidence, "quality": graded(traffic.truly, seed=week)}
        alarm = monitor.update(seen)
        print(f"Week {week}: {alarm or 'no alarm'}")
        if alarm:
            break


if __name__ == "__main__":
    raise SystemExit(main())
