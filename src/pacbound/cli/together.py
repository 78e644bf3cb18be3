"""`pacbound together`, `pacbound judge`: several claims that share one delta, as one certificate.

What is claimed of a judge is known. Other claims are declared in a TOML file, which can be kept
under version control before the data are there: which claims are made, and their shares of delta,
must be fixed before the data are looked at.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from pacbound.atomic_files import refuse_overwriting
from pacbound.claims import CLAIMS, claim_of
from pacbound.claims.bundle import CLAIM, CertificateBundle, certify_together
from pacbound.claims.certificate import Certificate, load_certificate
from pacbound.claims.claim import certify
from pacbound.claims.judge import certify_judge, labels_needed
from pacbound.claims.provenance import sample_name
from pacbound.cli.certifying import columns_of, summed
from pacbound.cli.delivery import (
    AboutOption,
    OutputOption,
    about_of,
    deliver,
    progress_bar,
)
from pacbound.cli.exit_codes import ending_well
from pacbound.cli.lent_seeds import seed_for
from pacbound.cli.options import JsonOption, Reads, option
from pacbound.cli.rows import CLASSES, COUNTED, DRAWN, GRADED, PIPED, FilesArgument, RowChoices
from pacbound.errors import InvalidTypeError, InvalidValueError, PacboundError
from pacbound.forms import REQUIRED
from pacbound.procedures import union
from pacbound.tally.document import is_tally_file
from pacbound.tally.row_options import ROWS

# Options that name files.
_TABLES = ("answers",)

# The bounds on a judge that people are told the price of: so far apart.
_WIDTH = 0.1


@ending_well
def together(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="CLAIMS.toml | CERT...",
            help="A file that declares the claims; or certificates that were made already.",
        ),
        Reads(),
    ],
    delta: Annotated[
        float | None,
        option(
            "Chance that any claim is wrong, if the file does not say; for certificates, the "
            "sum of theirs if left out."
        ),
    ] = None,
    output: OutputOption = None,
    about: AboutOption = None,
    *,
    rows: Annotated[RowChoices, ("sample",)],
    as_json: JsonOption = False,
) -> int:
    """Certify several claims that share one delta: all of them are right at once.

    Each table of CLAIMS.toml is a claim: what it is (claim = "shield"), its rows (data = "r.csv"
    with columns, or data = ["t.json"] for tallies), its share, and the options of its Python
    function.
    Certificates must have been decided on before the data were looked at: to leave out one that was
    refused voids the rest.
    """
    named = sample_name(rows.options().get("sample"))
    declared = [path for path in files if path.suffix.lower() == ".toml"]
    if not declared:
        bundle = _of_certificates(files, delta)
    elif len(files) > 1:
        raise InvalidTypeError(
            f"{declared[0]} declares all claims: pass it alone, without other files."
        )
    else:
        written = {"-o": output}
        bundle = _of_declared(declared[0], delta, named, written=written)
    bundle = bundle.with_about(about_of(about), sample=named)
    return deliver(bundle, output, as_json=as_json)


def _of_certificates(paths: list[Path], delta: float | None) -> CertificateBundle:
    names = [path.stem for path in paths]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidValueError(
            f"Two certificates are called {twice!r}: claims go by the names of their files, so "
            "rename one."
        )
    made = {name: load_certificate(path) for name, path in zip(names, paths, strict=True)}
    spent = union.total(float(certificate.claim()["delta"]) for certificate in made.values())
    return CertificateBundle.of(made, delta=float(spent) if delta is None else delta)


def _of_declared(
    path: Path, delta: float | None, sample: str | None, *, written: Mapping[str, Path | None]
) -> CertificateBundle:
    document = _read(path)
    named = sample_name(document.pop("sample", None))
    if sample is not None and named not in (None, sample):
        raise InvalidValueError(f"{path} says sample = {named!r}: leave --sample out.")
    level = document.pop("delta", delta)
    if delta is not None and level != delta:
        raise InvalidValueError(f"{path} says delta = {level}, not {delta}: leave --delta out.")
    if level is None:
        raise InvalidTypeError(
            f"{path} says no delta, the chance that any claim is wrong: pass it."
        )
    made, shares, read = {}, {}, {}
    for name, table in document.items():
        if not isinstance(table, dict):
            raise InvalidValueError(
                f"{path}: {name} is not a claim: expected delta, sample, and a table [{name}] for "
                "each claim."
            )
        # All claims are checked before the first row is read.
        lends = partial(seed_for, written["-o"], member=name)
        made[name] = _declared(table, f"{path}, [{name}]", path.parent, lends)
        read[f"[{name}]"] = _files_of(table, path.parent)
        shares[name] = table.get("share", 1)
    refuse_overwriting(written, read)
    return certify_together(made, delta=level, shares=shares, sample=named)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidValueError(f"{path} is not TOML: {error}.") from None


def _declared(
    table: Mapping[str, Any], where: str, folder: Path, lends: Callable[..., int | None]
) -> Callable[..., Certificate]:
    """What makes the certificate of one claim, once its table is seen to fit: its columns, what is
    asked for and how rows are read stand beside each other, and `data` names files or tallies.
    """
    kind, implied = _meant(table.get("claim"), where)
    claim = claim_of(kind)
    columns = [column.name for column in columns_of(claim)]
    asks = {
        ask.name: ask for ask in claim.asks if ask.option and ask.name not in ("delta", "claim")
    }
    options = [name for name in ROWS if name != "progress"]
    for key in table:
        if key not in {"claim", "share", "data", *columns, *asks, *options}:
            near = get_close_matches(key, [*columns, *asks, *options, "data"], 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise InvalidTypeError(f"{where}: {kind} has no option {key!r}: leave it out.{hint}")
    for name, ask in asks.items():
        if ask.default is REQUIRED and name not in table:
            raise InvalidTypeError(f"{where}: {name} is missing, which {kind} needs.")
    paths = [table["data"]] if isinstance(table.get("data"), str) else table.get("data")
    if not isinstance(paths, list) or not paths or not all(isinstance(one, str) for one in paths):
        raise InvalidTypeError(
            f"{where}: data names no file: expected the name of a file with rows or of a tally, "
            "or a list of them."
        )
    given = {**table, **{key: _beside(folder, table[key]) for key in _TABLES if key in table}}
    named, asked, rows = (
        {key: given[key] for key in keys if key in given} for keys in (columns, asks, options)
    )
    there = _beside(folder, paths)
    return partial(_made, where, claim, named, {**asked, **implied}, there, rows, lends)


def _meant(word: Any, where: str) -> tuple[str, dict[str, str]]:
    """The kind that a word means, and what is asked for with it: a kind that can claim one of
    several things of the same rows goes by these, too.
    """
    if word in CLAIMS:
        return word, {}
    choices = {kind: ask for kind in CLAIMS for ask in claim_of(kind).asks if ask.name == "claim"}
    for kind, ask in choices.items():
        if word in ask.form.allowed:
            return kind, {"claim": word}
    others = [text for ask in choices.values() for text in ask.form.allowed if text != ask.default]
    raise InvalidValueError(
        f"{where}: claim = {word!r} is not one of {', '.join((*others, *CLAIMS))}."
    )


def _made(
    where: str,
    claim: Any,
    columns: Mapping[str, Any],
    asked: Mapping[str, Any],
    paths: list[str],
    options: Mapping[str, Any],
    lends: Callable[..., int | None],
    *,
    delta: float,
) -> Certificate:
    tallies = [path for path in paths if is_tally_file(path)]
    try:
        if tallies and len(tallies) < len(paths):
            raise InvalidTypeError(
                f"{tallies[0]} is a tally, other files have rows: pass one sort."
            )
        with progress_bar(f"counting {where.rpartition('[')[2].rstrip(']')}") as progress:
            data = summed(paths) if tallies else paths
            seed = None if tallies else lends(claim.kind, paths, {**columns, **options})
            rows = options if tallies else {**options, "progress": progress}
            rows = rows if seed is None else {**rows, "seed": seed}
            made: Certificate = certify(claim, columns, {**asked, "delta": delta}, data, rows)
            return made
    except PacboundError as error:
        raise type(error)(f"{where}: {error}") from None


def _files_of(table: Mapping[str, Any], folder: Path) -> list[str]:
    """All files that a claim is made from."""
    named = [table[key] for key in ("data", *_TABLES) if key in table]
    beside = [_beside(folder, one) for one in named]
    return [name for one in beside for name in (one if isinstance(one, list) else [one])]


def _beside(folder: Path, named: Any) -> Any:
    """Names of files as seen from the folder of the file that they stand in."""
    if isinstance(named, list):
        return [_beside(folder, one) for one in named]
    if not isinstance(named, str) or "://" in named:
        return named
    return str(folder / named)


@ending_well
def judge(
    files: FilesArgument,
    verdict: Annotated[str, option("Column: the judge's verdict on each row.")],
    delta: Annotated[float, option("The chance that any of the claims is wrong: 0.05")],
    label: Annotated[
        str | None, option("Column: what people say of each row, in the same classes.")
    ] = None,
    quality: Annotated[
        str | None,
        option("Column: how good people find each verdict, graded from 0 to 1; in place of label."),
    ] = None,
    confidence: Annotated[
        str | None, option("Column: how sure the judge is, from 0 to 1; with --xi.")
    ] = None,
    xi: Annotated[
        float | None,
        option("The share of the verdicts that may be wrong where they stand: 0.1"),
    ] = None,
    groups: Annotated[
        str | None, option("Column: the slice of each row, such as its language.")
    ] = None,
    *,
    rows: Annotated[RowChoices, (*CLASSES, *GRADED, *DRAWN, "labels", *PIPED, *COUNTED, "sample")],
    output: OutputOption = None,
    about: AboutOption = None,
    as_json: JsonOption = False,
) -> int:
    """Certify how often a judge is right, and the confidence from which its verdict may stand.

    Of a table with a judge's verdicts and people's labels: bounds on the rate at which each verdict
    is right, the same for each slice, and the confidence from which at most xi of the verdicts are
    wrong. All claims hold at once, in one certificate, which show, report, verify and monitor take.

    Exit code 0: certified. 3: no confidence is high enough, or only in some slices.
    """
    options = {**rows.options(), "about": about_of(about) or None}
    tables = rows.tables(files)
    seed = seed_for(output, CLAIM.kind, tables, {**options, "quality": quality})
    options |= {} if seed is None else {"seed": seed}
    with progress_bar("counting") as progress:
        bundle = certify_judge(
            verdict,
            label,
            confidence,
            quality=quality,
            delta=delta,
            xi=xi,
            groups=groups,
            data=tables,
            **options,
            progress=progress,
        )
    if not as_json:
        typer.echo(_labels(bundle))
    return deliver(bundle, output, as_json=as_json)


def _labels(bundle: CertificateBundle) -> str:
    """About how many labels would narrow the bounds on each verdict."""
    needed = labels_needed(bundle, _WIDTH)
    listed = [f"{name} about {need:,} (there are {had:,})" for name, (had, need) in needed.items()]
    return f"Labels, estimated, for bounds at most {_WIDTH:.0%} apart: {', '.join(listed)}.\n"
