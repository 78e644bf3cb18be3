"""With numpy and scipy alone, pacbound can be looked at and its core used; what needs an extra says
so when it is used.

The programs run in a process of their own in which no optional package can be imported, so that
this is tested in every environment.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

BLOCKER = """
import sys
import numpy

CORE = {*sys.stdlib_module_names, "numpy", "scipy", "pacbound"}

class Blocker:
    def find_spec(self, name, path=None, target=None):
        # The interpreter's own build has modules with names of their own, all underscored.
        if name[0] != "_" and name.split(".")[0] not in CORE:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
"""

PACKAGES = [
    "pacbound",
    "pacbound.baselines",
    "pacbound.calibration",
    "pacbound.cascade",
    "pacbound.claims.certificate",
    "pacbound.monitor",
    "pacbound.paper",
    "pacbound.planning",
    "pacbound.claims.recall",
    "pacbound.report",
    "pacbound.shield",
    "pacbound.stats",
    "pacbound.tally",
]

LOOKS = {
    "help": "import pydoc; assert len(pydoc.render_doc(package)) > 100",
    "hasattr": "assert all(hasattr(package, name) for name in names)",
    "getmembers": "import inspect; assert set(names) <= dict(inspect.getmembers(package)).keys()",
    "import star": "exec(f'from {package.__name__} import *', found := {}); "
    "assert set(names) <= found.keys()",
    "dir": "assert set(names) <= set(dir(package))",
    "doctest": "import doctest; doctest.DocTestFinder().find(package)",
}

ABSENT = {
    "pacbound.PACClassifier": "sklearn",
    "pacbound.SelectiveClassifier": "sklearn",
    "pacbound.shield.Rollouts": "shield",
    "pacbound.shield.collect_rollouts": "shield",
}

USES = {
    "calibrate": """
certificate = pacbound.calibrate([0.6, 0.9] * 100, [0, 1] * 100, delta=0.05)
certificate.save("saved.json")
assert pacbound.load_certificate("saved.json").verify()
assert certificate.interval([0.9]).shape == (1, 2)
print(certificate.summary())
""",
    "abstention": """
confidence, correct = [1.0] * 900 + [0.1] * 100, [True] * 900 + [False] * 100
certificate = pacbound.certify_abstention(confidence, correct, xi=0.05, delta=0.05)
certificate.save("saved.json")
assert pacbound.load_certificate("saved.json").answers([1.0, 0.1]).tolist() == [True, False]
""",
    "cascade": """
predictions, labels = [[1, 1]] * 990 + [[0, 1]] * 10, [1] * 1000
confidence = [0.9] * 990 + [0.1] * 10
certificate = pacbound.certify_cascade(confidence, predictions, labels, xi=0.02, delta=0.05)
certificate.save("saved.json")
assert pacbound.load_certificate("saved.json").verify()
fast = lambda rows: numpy.tile([0.1, 0.9], (len(rows), 1))
cascade = pacbound.Cascade([fast, fast], certificate)
assert cascade.predict(numpy.zeros((3, 2))).tolist() == [1, 1, 1]
""",
    "recall": """
scores, positive = [0.9] * 300 + [0.1] * 700, [True] * 300 + [False] * 700
certificate = pacbound.certify_recall(scores, positive, target=0.95, delta=0.05)
certificate.save("saved.json")
assert pacbound.load_certificate("saved.json").flags([0.95, 0.1]).tolist() == [True, False]
""",
    "false alarms": """
scores, positive = [0.9] * 300 + [0.1] * 700, [True] * 300 + [False] * 700
certificate = pacbound.certify_false_alarms(scores, positive, xi=0.05, delta=0.05)
certificate.save("saved.json")
assert pacbound.load_certificate("saved.json").flags([0.95, 0.1]).tolist() == [1, 0]
""",
    "shield": """
scores, unsafe = [0.9] * 50 + [0.1] * 950, [True] * 50 + [False] * 950
certificate = pacbound.certify_shield(scores, unsafe, xi=0.05, delta=0.05)
certificate.save("saved.json")
assert pacbound.load_certificate("saved.json").verify()
shield = pacbound.Shield(lambda x: "go", lambda x: "stop", lambda x: x, certificate)
assert shield(1.0) == "stop"
""",
    "monitor": """
certificate = pacbound.certify_shield([0.1] * 500, [False] * 500, xi=0.02, delta=0.01)
monitor = pacbound.Monitor(certificate, delta=0.001)
assert monitor.update([True] * 10)
monitor.save("state.json")
assert pacbound.Monitor.load("state.json", certificate).evidence == monitor.evidence
""",
    "tally": """
tally = pacbound.Tally.count("calibration", confidence=[0.6, 0.9], correct=[0, 1])
tally.save("tally.json")
assert pacbound.Tally.load("tally.json") == tally
more = pacbound.Tally.count("calibration", confidence=[0.7], correct=[1])
pacbound.calibrate(data=tally + more, delta=0.1)
""",
    "estimators without scikit-learn": """
probabilities, labels = numpy.tile([0.2, 0.8], (50, 1)), [1] * 50
calibrator = pacbound.PACCalibrator(delta=0.05).fit(probabilities, labels)
assert calibrator.predict_interval(probabilities).shape == (50, 2)
from pacbound.baselines import TemperatureScaling
TemperatureScaling().fit(numpy.log(probabilities), labels)
""",
    "planning": """
print(pacbound.trials_needed(0.05, 0.01, delta=0.05))
assert pacbound.planned_looks(0.05, delta=0.05, looks=[100, 200]).verdict(0, 100)
pilot = pacbound.Tally.count("calibration", confidence=[0.6, 0.9] * 20, correct=[0, 1] * 20)
print(pacbound.plan_from_pilot(pilot, delta=0.05, sizes=[100, 200]).summary())
""",
}


def run_in_the_core(program: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", BLOCKER + program],
        capture_output=True, text=True, check=False, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_looking_at_a_package_fails_for_want_of_no_extra(tmp_path: Path) -> None:
    run_in_the_core(
        f"""
import importlib
for look in {[*LOOKS.values()]}:
    # Each look is the first.
    for name in [name for name in sys.modules if name.split(".")[0] == "pacbound"]:
        del sys.modules[name]
    for name in {PACKAGES}:
        package = importlib.import_module(name)
        names = getattr(package, "__all__", [])
        exec(look)
""",
        tmp_path,
    )


def test_using_a_name_whose_extra_is_missing_names_the_pip_command(tmp_path: Path) -> None:
    printed = run_in_the_core(
        f"""
import importlib
from pacbound.claims.cascade import certify_cascade
from pacbound.errors import MissingDependencyError
for name in {[*ABSENT]}:
    package, attribute = name.rsplit(".", 1)
    thing = getattr(importlib.import_module(package), attribute)
    print(name, thing.__doc__)
    uses = [lambda: thing(1, key=2)]
    if isinstance(thing, type):
        uses += [lambda: type("Sub", (thing,), {{}}), lambda: thing.load("file")]
    for use in uses:
        try:
            use()
        except MissingDependencyError as error:
            print(name, error)
    assert not isinstance(thing, type) or not isinstance(3, thing)
    assert not hasattr(thing, "__wrapped__")
""",
        tmp_path,
    )
    lines = printed.splitlines()
    for name, extra in ABSENT.items():
        said = [line for line in lines if line.startswith(f"{name} ")]
        assert len(said) == (4 if name.rsplit(".", 1)[1][0].isupper() else 2)
        assert all(line.endswith(f"pip install 'pacbound[{extra}]'") for line in said)


def test_a_name_is_there_as_soon_as_its_extra_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="this test installs scikit-learn by unblocking it")
    run_in_the_core(
        """
import pacbound
assert hasattr(pacbound.PACClassifier, "__missing_dependency__")
del sys.meta_path[0]
assert not hasattr(pacbound.PACClassifier, "__missing_dependency__")
""",
        tmp_path,
    )


def test_the_core_needs_numpy_and_scipy_alone(tmp_path: Path) -> None:
    program = "import pacbound"
    for use, lines in USES.items():
        program += f"\nprint({use!r}, file=sys.stderr)\n{lines}"
    run_in_the_core(program, tmp_path)


def test_the_core_is_numpy_and_scipy() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert [name.split(">")[0] for name in project["dependencies"]] == ["numpy", "scipy"]
