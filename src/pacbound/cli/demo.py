"""`pacbound demo`: a story in six steps, or the whole of it, on a network's predictions and a
simulated robot's rollouts that ship with the package.

The tables are written as CSV files, and then it is a list of commands, each of which is printed
before it is run: in the folder of the demo they can be run again, one by one.
"""

from __future__ import annotations

import csv
import json
import os
import runpy
import shlex
import sys
import webbrowser
from collections.abc import Mapping
from contextlib import chdir
from dataclasses import dataclass, replace
from fractions import Fraction
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from pacbound.atomic_files import atomic_file
from pacbound.cli.app import app
from pacbound.cli.exit_codes import BUG, complain, ending_well
from pacbound.cli.options import Writes, option
from pacbound.data import IndoorNavigationRollouts, fashion_mnist, indoor_navigation
from pacbound.procedures.threshold import TOP

SCRIPT = "story.py"
# What commands would go on from, or keep, if it were there: another demo begins anew.
STATES = ("ask_labels.csv", "label.json", "monitor.json", "requests.csv.batch")

FAST = "--confidence confidence_fast --prediction prediction_fast,prediction_slow"
SLOW = "--confidence confidence_slow --prediction prediction_slow --label label"
SAFE = "--score score --unsafe unsafe --horizon 100"
CLAIM = "--xi 0.01 --delta 0.01"


@dataclass(frozen=True)
class Step:
    """A sentence, the command that it is about, the exit code that the command ends with, and
    whether it belongs to the six steps that are told first.
    """

    says: str
    command: str
    code: int = 0
    is_first: bool = False


# The story, chapter by chapter: sentences, each with the command that it is about, and behind # the
# code that the command ends with, where it is not 0. Those with a star are the six steps.
TOLD = f"""\
PLAN

How many labels show that at most 2 % are wrong, if 1 % are?
$ pacbound plan rate --target 0.02 --expected 0.01 --delta 0.01

Or look several times on the way, and stop when it is shown.
$ pacbound plan looks --looks 500,1000,2000,4000 --xi 0.02 --delta 0.01

Or ask a pilot of 2,000 images how many a cascade will take.
$ pacbound plan pilot pilot.csv --column confidence=confidence_fast \
--column prediction=prediction_fast,prediction_slow --column label=label {CLAIM} --goal 0.5 \
--sizes 2000,5000,10000 --draws 10

CALIBRATE

How often is the network right, where it claims to be so sure?
$ pacbound calibrate held.csv {SLOW} --n-bins 10 --delta 0.01 \
--about 'model=convolutional network, whole' --about dataset=@held.csv \
--about 'owner=pacbound demo' -o calibration.json

Give every new prediction its interval.
$ pacbound apply calibration.json future.csv -o predictions_with_intervals.csv

Images that came in sessions depend on each other: draw one of each.
$ pacbound calibrate held.csv {SLOW} --n-bins 10 --delta 0.01 --clusters session \
-o by_session.json

In use there will be twice as many shirts: weigh the rows.
$ pacbound calibrate held.csv {SLOW} --n-bins 10 --delta 0.01 --weights shop_weight \
--weight-bound 2 -o for_the_shop.json

Labels cost money, and most rows fall into the last bin: choose as many from each.
$ pacbound stratify pool.csv --confidence confidence_slow --labels 2000 --n-bins 10 \
-o to_label.csv

Have them labelled.
$ python story.py answer to_label.csv label=label

A fifth of the labels leaves the sparse bins as narrow as all of them do.
$ pacbound calibrate to_label.csv {SLOW} --n-bins 10 --strata 10 --delta 0.01 -o stratified.json

ABSTAIN

The network answers only where at most 1 % of its answers are wrong.
$ pacbound abstain held.csv {SLOW} {CLAIM} -o abstention.json

CASCADE

* The early exit answers for the whole network, losing at most 1 % accuracy.
$ pacbound cascade held.csv {FAST} --label label --costs 115456,3733888 {CLAIM} \
--about 'model=early exit, whole network' -o cascade.json

What does an image cost at most, on average?
$ pacbound cost cascade.json future.csv --delta 0.01

Only images on which the two differ need a label. These are they.
$ pacbound to-label pool.csv --prediction prediction_fast,prediction_slow -o to_label.csv

Most labels do not matter, and many rows exit early without any. Ask for the 300 that matter \
most.
$ pacbound label pool.csv {FAST} --session label.json {CLAIM} --ask ask_labels.csv --count 300

Have them labelled.
$ python story.py answer ask_labels.csv label=label

Take them in. All that are still missing count as losses, so that it holds as it is.
$ pacbound label pool.csv {FAST} --session label.json --answers ask_labels.csv -o labelled.json

Or let a fold of the rows choose among models, and the others certify the choice.
$ pacbound design held.csv --confidence confidence_fast,confidence_slow \
--prediction prediction_fast,prediction_slow --label label --costs 115456,3618432 {CLAIM} \
--bound pair -o design.json

REPLACE A MODEL

May the whole network replace the early exit? It is right more often. Labels matter only where \
the two differ.
$ pacbound compare held.csv --prediction prediction_fast,prediction_slow --label label --xi 0 \
--delta 0.01 -o replace.json

And the early exit the whole network, if 1 % may be lost? More is, so no number of rows helps.
$ pacbound compare held.csv --prediction prediction_slow,prediction_fast --label label {CLAIM} # 3

JUDGE ANSWERS

Answers in words are not right or wrong: a judge grades them. Here grades are made up from the \
labels: 5 for the right garment, 3 for a similar one, 1 for any other. The early exit answers, \
losing at most 1 % of the quality.
$ pacbound cascade held.csv {FAST} --quality grade_fast,grade_slow --quality-scale 1,5 \
--graded-by 'a rule on the labels' --row-ids id {CLAIM} -o judged.json

May a judge be trusted? Here the early exit plays one: it passes what it takes for a shirt.
$ pacbound judge held.csv --verdict passes --label shirt --confidence confidence_fast --xi 0.02 \
--delta 0.01 -o judge.json

ANSWER A BATCH

10,000 records, of whose answers at most 5 % may differ from the slow model's.
$ pacbound batch requests.csv --confidence confidence_fast --prediction prediction_fast \
--xi 0.05 --delta 0.1 --seed 0 --ask ask_sample.csv

The slow model answers.
$ python story.py answer ask_sample.csv answer=prediction_slow

The sample says which others it has to answer.
$ pacbound batch requests.csv --answers ask_sample.csv --ask ask_rest.csv

The slow model answers.
$ python story.py answer ask_rest.csv answer=prediction_slow

That is all.
$ pacbound batch requests.csv --answers ask_rest.csv -o answered.csv --certificate batch.json

FLAG

Flag where the early exit may be wrong: at least 95 % of its mistakes are found.
$ pacbound recall held.csv --score doubt --positive mistake --target 0.95 --delta 0.01 \
-o recall.json

Or flag as much as can be, while at most 20 % of what is right is flagged falsely.
$ pacbound false-alarms held.csv --score doubt --positive mistake --xi 0.2 --delta 0.01 \
-o false_alarms.json

Or flag only what is worth a look: at least half of what is flagged is a mistake.
$ pacbound precision held.csv --score doubt --positive mistake --target 0.5 --delta 0.01 \
-o precision.json

Or both at once: all thresholds that find 80 % and flag at most 30 % falsely.
$ pacbound alarm-range held.csv --score doubt --positive mistake --xi 0.3 --target 0.8 \
--delta 0.01 -o alarm_range.json

80 % over all may be much less where the early exit says shirt: let it hold for every answer, \
each from its own score on. One of them makes too few mistakes to tell.
$ pacbound recall held.csv --score doubt --positive mistake --target 0.8 --delta 0.01 \
--groups prediction_fast --group-thresholds own -o recall_by_answer.json

SHIELD A ROBOT

* A robot brakes before it is too late, in all but 10 % of its rollouts.
$ pacbound shield rollouts.csv {SAFE} --xi 0.1 --delta 0.01 -o shield.json

The paper's bound for the same.
$ pacbound shield rollouts.csv {SAFE} --xi 0.1 --delta 0.01 --bound product \
--final-score final_score -o product.json

Of the rollouts that would crash, at most 20 % are missed, however many there are.
$ pacbound shield rollouts.csv {SAFE} --xi 0.2 --delta 0.01 --rate among-unsafe \
-o among_unsafe.json

Look early, as planned: 10,000 rollouts are the second of three looks.
$ pacbound shield rollouts.csv {SAFE} --xi 0.1 --delta 0.01 --looks 5000,10000,20000 \
-o look.json

A robot in the field has no simulator: drive with the shield on, at rising thresholds. Here what \
happens in each drive is made up from the rollouts above.
$ pacbound drives drives.csv --threshold threshold --unsafe unsafe --xi 0.1 --delta 0.01 \
--horizon 100 -o drives.json

A simulator that can go back tells more: brake once wherever the danger rises. These forks are \
made up in the same way.
$ pacbound forks forks.csv --rollout rollout --lowest lowest --highest highest --unsafe unsafe \
--xi 0.1 --delta 0.01 --horizon 100 -o forks.json

COUNT IN PARTS

Data on several machines are counted where they are.
$ pacbound tally shield rollouts.csv --score score --unsafe unsafe -o here.tally.json

So are others.
$ pacbound tally shield future_rollouts.csv --score score --unsafe unsafe -o there.tally.json

Only the counts travel, and their sum is certified.
$ pacbound certify shield here.tally.json there.tally.json --xi 0.1 --delta 0.01 --horizon 100 \
-o both.json

CLAIM TOGETHER

Each claim above is right with its own probability. These two are right at once, and a budget \
stops the look that would be one too many.
$ python story.py together

What was spent of the budget, and on what?
$ pacbound budget budget.json

Certificates that are there can be put together, if that was decided beforehand.
$ pacbound together abstention.json recall.json -o pair.json

MONITOR

* Answers are mixed up in use from image 5,001 on: the alarm rings.
$ pacbound monitor cascade.json in_use.csv --delta 0.001 --state monitor.json # 1

CHECK

Hold the claims against images and rollouts that took no part in them.
$ python story.py future

Read a certificate.
$ pacbound show shield.json

Verify all of them, without the data.
$ pacbound verify calibration.json by_session.json for_the_shop.json stratified.json \
abstention.json cascade.json labelled.json design.json replace.json judged.json batch.json \
recall.json \
recall_by_answer.json false_alarms.json alarm_range.json shield.json product.json \
among_unsafe.json look.json drives.json forks.json both.json bundle.json pair.json precision.json

Let a pipeline pass only what it asks for, counted again from the data.
$ pacbound verify cascade.json --require-certified --kind cascade --max-xi 0.01 --max-delta 0.01 \
--data held.csv

* Somebody improves a certificate.
$ python story.py tamper

* Anyone can find out, without the data.
$ pacbound verify improved.json # 1

DRAW

Draw what was certified.
$ python story.py figures

REPORT

* Put it all on one page.
$ pacbound report calibration.json by_session.json abstention.json cascade.json replace.json \
judged.json batch.json recall.json recall_by_answer.json false_alarms.json alarm_range.json \
shield.json \
among_unsafe.json look.json drives.json forks.json bundle.json \
--monitor monitor.json -o report.html
"""


def _chapters(told: str) -> dict[str, list[Step]]:
    story: dict[str, list[Step]] = {}
    for part in told.strip().split("\n\n"):
        says, _, command = part.partition("\n$ ")
        typed, _, code = command.partition(" # ")
        if typed:
            first, says = says.startswith("* "), says.removeprefix("* ")
            story[next(reversed(story))].append(Step(says, typed, int(code or 0), first))
        else:
            story[says] = []
    return story


STORY = _chapters(TOLD)


@ending_well
def demo(
    output: Annotated[
        Path, option("--output", "-o", "The folder that everything is written to."), Writes()
    ] = Path("pacbound-demo"),
    everything: Annotated[
        bool, option("--all", "Tell the whole story, with every command.")
    ] = False,
    opens: Annotated[bool, option("--open", "Open the page, where there is a desktop.")] = False,
) -> int:
    """Certify, monitor and verify in six steps, on a network's predictions and a simulated robot's
    rollouts.

    Every command is printed before it is run. What they need is written into the folder first, so
    that each can be run again there.
    """
    output.mkdir(parents=True, exist_ok=True)
    written = {**_images(), **_rollouts()}
    for name in STATES:
        (output / name).unlink(missing_ok=True)
    for name, columns in written.items():
        _write(output / name, columns)
    with atomic_file(output / SCRIPT) as file:
        file.write(Path(__file__).with_name("demo_script.py").read_bytes())
    typer.echo(f"To run a command again, where its tables are:\n$ cd {shlex.quote(str(output))}")
    with chdir(output):
        code = _tell(STORY) if everything else _tell_first()
        if code:
            return code
        typer.echo(f"\n{_all_deltas()}")
    if not everything:
        typer.echo("There is more to see: pacbound demo --all")
    page = output.resolve() / "report.html"
    typer.echo(f"The page: {page}")
    if opens and not _opened(page):
        complain("There is no desktop to open it on.")
    return 0


def first_steps() -> list[Step]:
    """The six steps, without files that only the whole story makes."""
    *steps, page = [step for steps in STORY.values() for step in steps if step.is_first]
    made = {word for step in steps for word in step.command.split()}
    kept = [word for word in page.command.split() if word in made or not word.endswith(".json")]
    return [*steps, replace(page, command=" ".join(kept))]


def _tell_first() -> int:
    for number, step in enumerate(first_steps(), start=1):
        code = _told(step, f"{number}. {step.says}")
        if code:
            return code
    return 0


def _tell(story: Mapping[str, list[Step]]) -> int:
    """Run all steps; the exit code is that of one that did not end as it should."""
    for number, (title, steps) in enumerate(story.items(), start=1):
        typer.echo(f"\n{number}. {title}")
        for step in steps:
            code = _told(step, step.says)
            if code:
                return code
    return 0


def _told(step: Step, says: str) -> int:
    """Say and run a step; the exit code is 0 if it ends as it should."""
    typer.echo(f"\n{says}\n$ {step.command}")
    sys.stdout.flush()
    code = _run(step)
    sys.stderr.flush()
    if code == step.code:
        return 0
    complain(f"{step.command} ended with {code}, not {step.code}: the story ends here.")
    # One that was interrupted, or ended by a signal, says so itself.
    return max(BUG, code)


def _all_deltas() -> str:
    """What the certificates of the page add up to, as a sentence."""
    page = STORY["REPORT"][-1].command.split()
    paths = [Path(word) for word in page if word.endswith(".json") and word != "monitor.json"]
    claims = [json.loads(path.read_text())["claim"] for path in paths if path.exists()]
    total = sum((Fraction(repr(claim["delta"])) for claim in claims), Fraction(0))
    return (
        f"Each of these {len(claims)} claims is wrong with probability at most its delta; any of "
        f"them with at most {float(total):g}, the sum."
    )


def _opened(page: Path) -> bool:
    """Whether a browser on a desktop opens the page."""
    desktop = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return bool(desktop or sys.platform in ("darwin", "win32")) and webbrowser.open(page.as_uri())


def _run(step: Step) -> int:
    """Run a command in this process, as a shell would in one of its own."""
    program, *arguments = shlex.split(step.command)
    if program == "pacbound":
        return int(app(arguments, standalone_mode=False) or 0)
    before, sys.argv = sys.argv, arguments
    try:
        runpy.run_path(arguments[0], run_name="__main__")
    finally:
        sys.argv = before
    return 0


def _images() -> dict[str, dict[str, list[Any]]]:
    """The tables of images: half of them certify, and the other half plays the future."""
    table = fashion_mnist()
    columns = {
        "id": np.arange(len(table.label)),
        "confidence_fast": table.confidence_fast,
        "prediction_fast": table.prediction_fast,
        "confidence_slow": table.confidence_slow,
        "prediction_slow": table.prediction_slow,
        "label": table.label,
        "doubt": 1.0 - table.confidence_fast.astype(np.float64),
        "mistake": table.prediction_fast != table.label,
        "passes": table.prediction_fast == _SHIRT,
        "shirt": table.label == _SHIRT,
        "grade_fast": _grades(table.prediction_fast, table.label),
        "grade_slow": _grades(table.prediction_slow, table.label),
        # Images have no sessions: five that follow each other play one.
        "session": np.arange(len(table.label)) // 5,
        # The shop sells twice as many of what the network takes for a shirt.
        "shop_weight": np.where(table.prediction_slow == _SHIRT, 2, 1),
    }
    held, future = _halves(len(table.label))
    wrong = dict(_rows(columns, future))
    fast = np.array(wrong["prediction_fast"])
    # From half-way on, a fault pairs each image with the early exit's answer to the one before.
    half = len(future) // 2
    wrong["prediction_fast"] = np.where(
        np.arange(len(fast)) < half, fast, np.roll(fast, 1)
    ).tolist()
    unlabelled = {name: column for name, column in columns.items() if name not in _ABOUT_LABELS}
    fast_only = ("id", "confidence_fast", "prediction_fast")
    return {
        "held.csv": _rows(columns, held),
        "future.csv": _rows(columns, future),
        "pilot.csv": _rows(columns, held[:2000]),
        "pool.csv": _rows(unlabelled, held),
        "requests.csv": _rows({name: columns[name] for name in fast_only}, future),
        "in_use.csv": wrong,
    }


_ABOUT_LABELS = ("label", "mistake", "shirt", "grade_fast", "grade_slow")
_SHIRT = 6
# Tops, trousers, dresses, shoes and bags, by the numbers of the classes.
_SORTS = np.array([0, 1, 0, 2, 0, 3, 0, 3, 4, 3])


def _grades(prediction: Any, label: Any) -> Any:
    """What a judge might say of each answer: 5 if it is right, 3 if it is of the same sort."""
    similar = _SORTS[prediction] == _SORTS[label]
    return np.where(prediction == label, 5, np.where(similar, 3, 1))


def _rollouts() -> dict[str, dict[str, list[Any]]]:
    table = indoor_navigation()
    held, future = _halves(len(table.unsafe))
    columns = {
        "score": table.score,
        "unsafe": table.unsafe,
        "final_score": table.final_score,
        "success": table.success,
    }
    return {
        "rollouts.csv": _rows(columns, held),
        "future_rollouts.csv": _rows(columns, future),
        "drives.csv": _rows(_drives(table, held), slice(None)),
        "forks.csv": _rows(_forks(table, held), slice(None)),
    }


_DRIVEN = (0.2, 0.4, 0.6, 0.8)
_A_DRIVE = 1000


def _drives(table: IndoorNavigationRollouts, held: Any) -> dict[str, Any]:
    """Drives at rising thresholds: one that fires before it is too late ends well."""
    threshold, rows = np.repeat(_DRIVEN, _A_DRIVE), held[: len(_DRIVEN) * _A_DRIVE]
    return {
        "threshold": threshold,
        "unsafe": table.unsafe[rows] & (table.score[rows] < threshold),
    }


def _forks(table: IndoorNavigationRollouts, held: Any) -> dict[str, Any]:
    """Two rows for each rollout: at thresholds that it reaches in time braking is safe."""
    reached = np.floor(table.score[held] * TOP).clip(-1, TOP).astype(np.int64)
    lowest, highest = np.zeros((2, len(held), 2), np.int64)
    lowest[:, 1], highest[:, 0], highest[:, 1] = reached + 1, reached, TOP + 1
    unsafe = np.stack([np.zeros(len(held), bool), table.unsafe[held]], axis=1)
    columns = {"lowest": lowest, "highest": highest, "unsafe": unsafe}
    columns["rollout"] = np.repeat(table.seed[held, None], 2, axis=1)
    given = lowest <= highest
    return {name: column[given] for name, column in columns.items()}


def _halves(rows: int) -> tuple[Any, Any]:
    """Which rows certify, and which play the future, drawn by a seed that is fixed here."""
    order = np.random.default_rng(2021).permutation(rows)
    return np.sort(order[: rows // 2]), np.sort(order[rows // 2 :])


def _rows(columns: Mapping[str, Any], rows: Any) -> dict[str, list[Any]]:
    return {name: column[rows].tolist() for name, column in columns.items()}


def _write(path: Path, columns: Mapping[str, list[Any]]) -> None:
    with atomic_file(path) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        text.detach()
