"""Make the samples beside this file, with inspect_ai and lm-evaluation-harness and the models that
they bring for tests: no network, no weights.

    pip install inspect_ai lm_eval
    python tests/data/evaluations/make.py FOLDER
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

QUESTIONS = [(f"{a} + {b} =", str(a + b)) for a in range(2, 7) for b in range(3, 9)]


class Words:
    """Counts words in place of tokens, whose list would be downloaded."""

    def encode(self, text: str, **_: object) -> list[str]:
        return text.split()


def inspect_logs(folder: Path) -> None:
    """Two logs of one task, each question asked twice; the second model errs more often."""
    vars(import_module("tiktoken"))["get_encoding"] = lambda _: Words()
    inspect, models = import_module("inspect_ai"), import_module("inspect_ai.model")
    sample = import_module("inspect_ai.dataset").Sample
    match = import_module("inspect_ai.scorer").match
    for name, errs in (("old", 0.1), ("new", 0.2)):
        rng = random.Random(name)
        samples = [
            sample(id=place, input=text, target=answer)
            for place, (text, answer) in enumerate(QUESTIONS)
        ]

        def answer(messages: Any, *_: Any, rng: Any = rng, errs: float = errs) -> Any:
            text = dict(QUESTIONS)[messages[-1].text] if rng.random() >= errs else "unknown"
            return models.ModelOutput.from_content("mockllm/model", text)

        model = models.get_model("mockllm/model", custom_outputs=answer)
        (log,) = inspect.eval(
            inspect.Task(dataset=samples, scorer=match()),
            model=model,
            epochs=2,
            log_dir=str(folder / "logs"),
            log_format="json",
            display="none",
            max_connections=1,
        )
        whole = json.loads(Path(log.location).read_text())
        kept = ("id", "epoch", "input", "target", "scores")
        whole["samples"] = [{key: one[key] for key in kept} for one in whole["samples"]]
        whole = {key: whole[key] for key in ("version", "status", "eval", "samples")}
        (folder / f"inspect_{name}.json").write_text(json.dumps(whole))


CHOICES = """
task: sums
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
doc_to_text: "{{{{question}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: answer
output_type: multiple_choice
metric_list: [{{metric: acc, aggregation: mean, higher_is_better: true}}]
"""
WORDS = """
task: words
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{word}}}}"
output_type: generate_until
generation_kwargs: {{until: ["\\n"]}}
filter_list:
  - name: strict-match
    filter: [{{function: regex, regex_pattern: "(lol|lal)"}}, {{function: take_first}}]
  - name: flexible-extract
    filter: [{{function: regex, regex_pattern: "(l)"}}, {{function: take_first}}]
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
"""


def harness_samples(folder: Path) -> None:
    """The samples of two tasks by the model that guesses, twice: one with choices, and one whose
    answers go through two filters."""
    rows = [
        {
            "question": text,
            "choices": [answer, str(int(answer) + 1)],
            "answer": 0,
            "word": "l" if place % 3 else "lol",
        }
        for place, (text, answer) in enumerate(QUESTIONS)
    ]
    data = folder / "questions.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)))
    for name, task in (("sums", CHOICES), ("words", WORDS)):
        (folder / f"{name}.yaml").write_text(task.format(data=data))
    for seed, name in enumerate(("old", "new")):
        out = folder / f"harness_{name}"
        subprocess.run(
            [sys.executable, "-m", "lm_eval", "--model", "dummy", "--tasks", "sums,words",
             "--include_path", folder, "--log_samples", "--output_path", out,
             "--seed", str(seed)],
            check=True,
        )  # fmt: skip
        for path in out.rglob("samples_*.jsonl"):
            task = path.name.split("_")[1]
            (folder / f"samples_{task}_{name}.jsonl").write_bytes(path.read_bytes())


if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(exist_ok=True)
    inspect_logs(folder)
    harness_samples(folder)
