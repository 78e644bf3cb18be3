"""The router in examples/llm_router.py, with the vendor's own client, against a server on loopback
that speaks OpenAI's chat completions."""

from __future__ import annotations

import csv
import json
import math
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.cascade.servers import drawn

from pacbound import certify_cascade
from pacbound.errors import InvalidValueError

pytest.importorskip("openai", reason="openai is missing: pip install openai")
EXAMPLE = Path(__file__).parents[2] / "examples" / "llm_router.py"

WORDS = {"refund": "money", "delivery": "parcel", "login": "password"}
CLASSES = list(WORDS)


def _message(number: int) -> tuple[str, str]:
    """A message and its class; every fifth says a misleading word first, which the small model
    falls for, and is unsure of."""
    true, other = CLASSES[number % 3], CLASSES[(number + 1) % 3]
    words = [WORDS[other], WORDS[true]] if number % 5 == 0 else [WORDS[true]]
    return f"{number}: about my " + ",\nor my ".join(words), true


@dataclass
class Server:
    """What the handler of a request shares with the test."""

    address: str = ""
    calls: dict[str, int] = field(default_factory=lambda: {"small": 0, "large": 0})
    lock: threading.Lock = field(default_factory=threading.Lock)
    refuse_next: int = 0
    fails: float = 0.0
    tries: Counter[str] = field(default_factory=Counter)
    paid: Counter[str] = field(default_factory=Counter)
    after: Callable[[], None] = lambda: None
    without_logprobs: bool = False
    reply: Callable[[str], str] | None = None
    refused: Callable[[str], bool] = lambda asked: False

    def answer(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        system, user = (message["content"] for message in request["messages"])
        with self.lock:
            if self.refuse_next:
                self.refuse_next -= 1
                return 503, {"error": {"message": "overloaded"}}
            asked = f"{request['model']}: {user}"
            self.tries[asked] += 1
            if self.refused(asked):
                return 400, {"error": {"message": "not this one"}}
            if drawn(asked, self.tries[asked]) < self.fails:
                return 500, {"error": {"message": "a bad day"}}
            self.calls[request["model"]] += 1
            self.paid[asked] += 1
            self.after()
        letters = dict(line.split(": ")[::-1] for line in system.splitlines()[1:])
        found = sorted((user.find(word), name) for name, word in WORDS.items() if word in user)
        said = found[0][1] if request["model"] == "small" else found[-1][1]
        letter = self.reply(user) if self.reply else letters[said]
        sure = 0.97 if len(found) == 1 else 0.55
        # Two tokens of one letter, as real vocabularies have them.
        tokens = [(letter, sure - 0.1), (f" {letter}", 0.1), ("the", 1 - sure)]
        top = [{"token": token, "logprob": math.log(p), "bytes": None} for token, p in tokens]
        logprobs = None if self.without_logprobs else {"content": [{**top[0], "top_logprobs": top}]}
        choice = {
            "index": 0,
            "finish_reason": "length",
            "message": {"role": "assistant", "content": letter},
            "logprobs": logprobs,
        }
        whole = {"id": "1", "object": "chat.completion", "created": 0, "model": request["model"]}
        return 200, whole | {"choices": [choice]}


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            known = self.path == "/v1/chat/completions"
            status, reply = state.answer(request) if known else (404, {})
            body = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Retry-After-Ms", "1")
            self.end_headers()
            self.wfile.write(body)

        # The name is the standard library's.
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, RUF100
            pass

    class Listener(ThreadingHTTPServer):
        # The five of the standard library make the sixth client wait a second.
        request_queue_size = 64

    with Listener(("127.0.0.1", 0), Handler) as httpd:
        state.address = f"http://127.0.0.1:{httpd.server_address[1]}/v1"
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield state
        httpd.shutdown()
        thread.join()


@pytest.fixture
def run(server: Server, tmp_path: Path) -> Callable[..., int]:
    main = runpy.run_path(str(EXAMPLE))["main"]

    def step(name: str, source: str, target: str, *more: str) -> int:
        files = [str(tmp_path / source), "-o", str(tmp_path / target)]
        models = ["--small", "small", "--large", "large", "--classes", ",".join(CLASSES)]
        arguments = [name, *files, "--text", "message", *models, *more]
        code: int = main(arguments, base_url=server.address, api_key="not a key")
        return code

    return step


def _write(path: Path, numbers: range, *, labelled: bool) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["message", "label"][: 2 if labelled else 1])
        table.writerows(_message(number)[: 2 if labelled else 1] for number in numbers)


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_a_router_is_collected_certified_and_run(
    server: Server, run: Callable[..., int], tmp_path: Path
) -> None:
    _write(tmp_path / "sample.csv", range(200), labelled=True)
    assert run("collect", "sample.csv", "rows.csv") == 0
    assert server.calls == {"small": 200, "large": 200}
    columns: Any = {"confidence": "confidence", "prediction": ["small", "large"], "label": "label"}
    certificate = certify_cascade(data=tmp_path / "rows.csv", **columns, xi=0.05, delta=0.05)
    assert certificate.certified
    assert 0.55 < certificate.thresholds[0] <= 0.97
    certificate.save(tmp_path / "router.json")

    _write(tmp_path / "new.csv", range(1000, 1060), labelled=False)
    certified = str(tmp_path / "router.json")
    assert run("route", "new.csv", "answers.csv", "--certificate", certified) == 0
    answers = _read(tmp_path / "answers.csv")
    assert [row["answer"] for row in answers] == [_message(n)[1] for n in range(1000, 1060)]
    expected = ["small" if n % 5 else "large" for n in range(1000, 1060)]
    assert [row["model"] for row in answers] == expected
    assert server.calls == {"small": 260, "large": 212}


@pytest.mark.slow
def test_a_collection_that_was_cut_off_pays_for_no_finished_answer_twice(
    server: Server, run: Callable[..., int], tmp_path: Path
) -> None:
    _write(tmp_path / "sample.csv", range(40), labelled=True)
    run("collect", "sample.csv", "rows.csv")
    whole = (tmp_path / "rows.csv").read_bytes()
    journal = tmp_path / "rows.csv.journal"
    lines = journal.read_bytes().split(b"\n")
    (tmp_path / "rows.csv").unlink()
    journal.write_bytes(b"\n".join(lines[:51]) + b"\n" + lines[51][:9])
    run("collect", "sample.csv", "rows.csv")
    assert (tmp_path / "rows.csv").read_bytes() == whole
    assert sum(server.calls.values()) == 80 + 30
    run("collect", "sample.csv", "rows.csv")
    assert sum(server.calls.values()) == 80 + 30


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a signal that kills")
@pytest.mark.parametrize("step", ["collect", pytest.param("route", marks=pytest.mark.long)])
def test_a_process_that_is_killed_loses_the_requests_under_way_alone(
    server: Server, run: Callable[..., int], tmp_path: Path, step: str
) -> None:
    _write(tmp_path / "sample.csv", range(60), labelled=False)
    more: list[str] = []
    if step == "route":
        scores, answers = [i / 100 for i in range(100)], [["refund"] * 2] * 100
        certify_cascade(scores, answers, xi=0.1, delta=0.1).save(tmp_path / "router.json")
        more = ["--certificate", str(tmp_path / "router.json")]
    seen = threading.Event()
    server.after = lambda: seen.set() if sum(server.calls.values()) > 30 else None
    script = f"import runpy; runpy.run_path({str(EXAMPLE)!r}, run_name='__main__')"
    arguments = [step, "sample.csv", "-o", "out.csv", "--text", "message", "--small", "small"]
    arguments += ["--large", "large", "--classes", ",".join(CLASSES), "--concurrency", "4", *more]
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        cwd=tmp_path,
        env={**os.environ, "OPENAI_BASE_URL": server.address, "OPENAI_API_KEY": "not a key"},
        stderr=subprocess.DEVNULL,
    )
    assert seen.wait(60)
    process.kill()
    assert process.wait(60) == -signal.SIGKILL
    # What was under way may still reach the server.
    while True:
        paid = sum(server.paid.values())
        time.sleep(0.2)
        if paid == sum(server.paid.values()):
            break
    lines = (tmp_path / "out.csv.journal").read_bytes().count(b"\n") - 1
    assert lines > 10
    assert run(step, "sample.csv", "out.csv", *more) == 0
    twice = sum(times - 1 for times in server.paid.values())
    assert twice <= 4, "the four requests under way"
    column = "large" if step == "collect" else "answer"
    assert all(row[column] for row in _read(tmp_path / "out.csv"))


@pytest.mark.slow
@pytest.mark.parametrize("retries", [1, pytest.param(20, marks=pytest.mark.long)])
def test_on_a_day_on_which_most_fails_every_answer_is_in_the_file_and_paid_for_once(
    server: Server, run: Callable[..., int], tmp_path: Path, retries: int
) -> None:
    server.fails, more = 0.6, ["--retries", str(retries)]
    _write(tmp_path / "sample.csv", range(50), labelled=True)
    code = run("collect", "sample.csv", "rows.csv", *more)
    rows = _read(tmp_path / "rows.csv")
    for place, paid in server.calls.items():
        assert sum(bool(row[place]) for row in rows) == paid
    assert len(rows) == 50
    assert code == (retries == 1)
    while code:
        code = run("collect", "sample.csv", "rows.csv", *more)
    assert server.calls == {"small": 50, "large": 50}
    assert set(server.paid.values()) == {1}
    columns: Any = {"confidence": "confidence", "prediction": ["small", "large"], "label": "label"}
    certificate = certify_cascade(data=tmp_path / "rows.csv", **columns, xi=0.2, delta=0.2)
    certificate.save(tmp_path / "router.json")

    _write(tmp_path / "new.csv", range(1000, 1030), labelled=False)
    more += ["--certificate", str(tmp_path / "router.json")]
    code = run("route", "new.csv", "answers.csv", *more)
    answers = _read(tmp_path / "answers.csv")
    assert code == (retries == 1) == (not all(row["answer"] for row in answers))
    answered = [row for row in answers if row["answer"]]
    assert all(row["answer"] == _message(int(row["message"].split(":")[0]))[1] for row in answered)
    while code:
        code = run("route", "new.csv", "answers.csv", *more)
    assert [row["answer"] for row in _read(tmp_path / "answers.csv")] == [
        _message(number)[1] for number in range(1000, 1030)
    ]
    assert set(server.paid.values()) == {1}
    assert server.calls["small"] <= 80


def test_the_share_of_rows_on_which_the_small_model_failed_is_said(
    server: Server,
    run: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    certificate = certify_cascade([0.9] * 500, [["refund"] * 2] * 500, xi=0.02, delta=0.05)
    certificate.save(tmp_path / "router.json")
    _write(tmp_path / "new.csv", range(20), labelled=False)
    words = ["route", "new.csv", "answers.csv", "--certificate", str(tmp_path / "router.json")]
    # The small model fails on two rows, and the large one on the second of them.
    server.refused = lambda asked: asked.startswith(("small: 3:", "small: 4:", "large: 4:"))
    assert run(*words) == 1
    assert "It failed on 2, f = 10.00% of all rows: at most xi + f" in capsys.readouterr().err
    # One of them is answered by it after all; what the large one answered for it stays in f.
    server.refused = lambda asked: False
    assert run(*words) == 0
    assert "It failed on 1, f = 5.00% of all rows" in capsys.readouterr().err


def test_a_collection_of_other_rows_is_left_alone(run: Callable[..., int], tmp_path: Path) -> None:
    _write(tmp_path / "sample.csv", range(10), labelled=True)
    _write(tmp_path / "other.csv", range(5, 15), labelled=True)
    run("collect", "sample.csv", "rows.csv")
    before = (tmp_path / "rows.csv").read_bytes()
    with pytest.raises(SystemExit, match="begun for other rows or models"):
        run("collect", "other.csv", "rows.csv")
    assert (tmp_path / "rows.csv").read_bytes() == before


def test_two_processes_do_not_write_one_journal(tmp_path: Path) -> None:
    journal, path = runpy.run_path(str(EXAMPLE))["Journal"], tmp_path / "rows.csv.journal"
    with journal(path, ["these rows"]) as first:
        first.keep(0, small=["refund", 0.9])
        with pytest.raises(SystemExit, match="is in use by another process"):
            journal(path, ["these rows"])
        first.keep(1, small=["login", 0.7])
    with journal(path, ["these rows"]) as again:
        assert sorted(again.answers) == [0, 1]


@pytest.mark.parametrize("text", ["my own notes\n", "a file without line break", '{"a": 1}'])
def test_a_file_that_is_no_journal_is_left_alone(
    run: Callable[..., int], tmp_path: Path, text: str
) -> None:
    _write(tmp_path / "sample.csv", range(4), labelled=True)
    (tmp_path / "rows.csv.journal").write_text(text)
    with pytest.raises(SystemExit, match="begun for other rows or models"):
        run("collect", "sample.csv", "rows.csv")
    assert (tmp_path / "rows.csv.journal").read_text() == text


def test_a_journal_whose_first_line_was_cut_short_is_begun_again(
    run: Callable[..., int], tmp_path: Path
) -> None:
    _write(tmp_path / "sample.csv", range(4), labelled=True)
    (tmp_path / "rows.csv.journal").write_text('{"belongs_to": "')
    assert run("collect", "sample.csv", "rows.csv") == 0
    whole = (tmp_path / "rows.csv.journal").read_bytes()
    assert run("collect", "sample.csv", "rows.csv") == 0
    assert (tmp_path / "rows.csv.journal").read_bytes() == whole


def test_a_server_that_is_overloaded_is_asked_again(
    server: Server, run: Callable[..., int], tmp_path: Path
) -> None:
    server.refuse_next = 2
    _write(tmp_path / "sample.csv", range(8), labelled=True)
    assert run("collect", "sample.csv", "rows.csv") == 0
    assert len(_read(tmp_path / "rows.csv")) == 8


def test_a_reply_that_names_no_class_is_never_sure(
    server: Server, run: Callable[..., int], tmp_path: Path
) -> None:
    server.reply = lambda text: "Z"
    _write(tmp_path / "sample.csv", range(4), labelled=True)
    run("collect", "sample.csv", "rows.csv")
    rows = _read(tmp_path / "rows.csv")
    assert {(row["small"], float(row["confidence"])) for row in rows} == {("(no class)", 0.0)}


def test_a_model_without_log_probabilities_is_refused(
    server: Server, run: Callable[..., int], tmp_path: Path
) -> None:
    server.without_logprobs = True
    _write(tmp_path / "sample.csv", range(4), labelled=True)
    with pytest.raises(SystemExit, match=r"(small|large) returns no log-probabilities"):
        run("collect", "sample.csv", "rows.csv")


def test_no_file_that_is_read_is_overwritten(run: Callable[..., int], tmp_path: Path) -> None:
    _write(tmp_path / "sample.csv", range(3), labelled=True)
    before = (tmp_path / "sample.csv").read_bytes()
    with pytest.raises(InvalidValueError, match=r"sample\.csv is read as FILE"):
        run("collect", "sample.csv", "sample.csv")
    assert (tmp_path / "sample.csv").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["sample.csv"]
