"""`pacbound together`: several claims that share one delta, as one certificate.

Claims are declared in a TOML file, which can be kept under version control before the data are
there: which claims are made, and their shares of delta, must be fixed before the data are looked
at.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial, reduce
from inspect import Parameter, signature
from operator import add
from pathlib import Path
from typing import Annotated, Any

import typer

from pacbound.asks import REQUIRED
from pacbound.claims import CLAIMS, claim_of
from pacbound.claims.bundle import CertificateBundle, certify_together
from pacbound.claims.certificate import Certificate, load_certificate
from pacbound.claims.claim import certify
from pacbound.claims.provenance import sample_name
from pacbound.cli.about import About
from pacbound.cli.certify import OTHER_VERBS
from pacbound.cli.delivery import BudgetOption, OutputOption, SampleOption, deliver
from pacbound.cli.exit_codes import ending_well
from pacbound.cli.file_options import Reads
from pacbound.cli.terminal import progress_bar
from pacbound.errors import InvalidTypeError, InvalidValueError, PacboundError
from pacbound.output_files import refuse_overwriting
from pacbound.procedures import union
from pacbound.tally import Tally
from pacbound.tally.document import is_tally_file
from pacbound.tally.row_options import DRAWN_BY, ROWS

_VERBS: dict[str, Callable[..., Certificate]] = {
    name: verb for name, (_, verb) in OTHER_VERBS.items()
}
_OWN = ("claim", "files", "tallies", "share")
_TABLES = ("answers", "pool")
"""Options that name files."""
_NOT_DECLARED = ("delta", "progress")
"""What a verb takes that is not for each claim to say."""


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
        typer.Option(
            help=(
                "Chance that any claim is wrong, if the file does not say; for certificates, the "
                "sum of theirs if left out."
            )
        ),
    ] = None,
    output: OutputOption = None,
    budget: BudgetOption = None,
    sample: SampleOption = None,
    *,
    about: About,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for programs.")] = False,
) -> int:
    """Certify several claims that share one delta: all of them are right at once.

    Each table of CLAIMS.toml is a claim: what it is (claim = "shield"), its rows (files = "r.csv"
    with columns, or tallies = ["t.json"]), its share, and the options of its Python function.
    Certificates must have been decided on before the data were looked at: to leave out one that was
    refused voids the rest.
    """
    named = sample_name(sample)
    declared = [path for path in files if path.suffix.lower() == ".toml"]
    if not declared:
        bundle = _of_certificates(files, delta)
    elif len(files) > 1:
        raise InvalidTypeError(
            f"{declared[0]} stands beside other files: one file declares all claims."
        )
    else:
        written = {"-o": output, "--budget": budget}
        bundle = _of_declared(declared[0], delta, named, written=written)
    bundle = bundle.with_about(about.told(), sample=named)
    return deliver(bundle, output, as_json=as_json, budget=budget)


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
        made[name] = _declared(table, f"{path}, [{name}]", path.parent)
        read[f"[{name}]"] = _files_of(table, path.parent)
        shares[name] = table.get("share", 1)
    refuse_overwriting(written, read)
    return certify_together(made, delta=level, shares=shares, sample=named)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidValueError(f"{path} is not TOML: {error}.") from None


def _declared(table: Mapping[str, Any], where: str, folder: Path) -> Callable[..., Certificate]:
    """What makes the certificate of one claim, once its table is seen to fit its verb."""
    kind = table.get("claim")
    if kind in CLAIMS:
        return _declared_claim(str(kind), table, where, folder)
    if kind not in _VERBS:
        listed = ", ".join((*_VERBS, *CLAIMS))
        raise InvalidValueError(f"{where}: claim = {kind!r} is not one of {listed}.")
    verb, options = _VERBS[kind], {key: table[key] for key in table if key not in _OWN}
    takes = signature(verb).parameters
    known = {name for name in takes if name not in _NOT_DECLARED and name != next(iter(takes))}
    rest = {name for name in known if takes[name].kind is Parameter.VAR_KEYWORD}
    if rest:
        known = known - rest | (ROWS.keys() - {*DRAWN_BY, *_NOT_DECLARED})
    misplaced = next((key for key in options if key in DRAWN_BY), None)
    if misplaced is not None:
        raise InvalidTypeError(
            f"{where}: {misplaced} is a column: name it in columns, as the others are."
        )
    odd = next((key for key in options if key not in known), None)
    if odd is not None:
        raise InvalidTypeError(f"{where}: {kind} has no option {odd!r}: leave it out.")
    absent = next(
        (
            name
            for name in takes
            if takes[name].default is Parameter.empty
            and takes[name].kind is Parameter.KEYWORD_ONLY
            and name not in ("delta", *options)
        ),
        None,
    )
    if absent is not None:
        raise InvalidTypeError(f"{where}: {absent} is missing, which {kind} needs.")
    if ("files" in table) == ("tallies" in table):
        raise InvalidTypeError(f"{where}: name its rows, either files or tallies.")
    if ("files" in table) != ("columns" in options):
        raise InvalidTypeError(
            f"{where}: files and columns go together, and tallies have no columns."
        )
    paths = table.get("files", table.get("tallies"))
    paths = [paths] if isinstance(paths, str) else paths
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths) or not paths:
        raise InvalidTypeError(f"{where}: expected the name of a file, or a list of them.")
    options |= {key: _beside(folder, options[key]) for key in _TABLES if key in options}
    places = [_beside(folder, path) for path in paths]
    return partial(_made, where, verb, places, options, counted="tallies" in table)


def _declared_claim(
    kind: str, table: Mapping[str, Any], where: str, folder: Path
) -> Callable[..., Certificate]:
    """The same for a claim: its columns, what is asked for and how rows are read stand beside each
    other, and `data` names files or tallies.
    """
    claim = claim_of(kind)
    columns = {column.name: column.needed for column in claim.columns}
    if claim.by_groups:
        columns["groups"] = False
    asks = {ask.name: ask for ask in claim.asks if ask.option and ask.name != "delta"}
    rows = set(ROWS) - {"progress"}
    for key in table:
        if key not in {"claim", "share", "data", *columns, *asks, *rows}:
            near = get_close_matches(key, [*columns, *asks, *rows, "data"], 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise InvalidTypeError(f"{where}: {kind} has no option {key!r}: leave it out.{hint}")
    for name, ask in asks.items():
        if ask.default is REQUIRED and name not in table:
            raise InvalidTypeError(f"{where}: {name} is missing, which {kind} needs.")
    paths = table.get("data")
    paths = [paths] if isinstance(paths, str) else paths
    if not isinstance(paths, list) or not paths or not all(isinstance(one, str) for one in paths):
        raise InvalidTypeError(
            f"{where}: data names no file: expected the name of a file with rows or of a tally, "
            "or a list of them."
        )
    options = {key: table[key] for key in table if key in rows}
    options |= {key: _beside(folder, options[key]) for key in _TABLES if key in options}
    named = {key: table[key] for key in table if key in columns}
    asked = {
        key: _beside(folder, table[key]) if key in _TABLES else table[key]
        for key in table
        if key in asks
    }
    return partial(_made_claim, where, claim, named, asked, _beside(folder, paths), options=options)


def _made_claim(  # noqa: PLR0913, RUF100
    where: str,
    claim: Any,
    columns: Mapping[str, Any],
    asked: Mapping[str, Any],
    paths: list[str],
    *,
    options: Mapping[str, Any],
    delta: float,
) -> Certificate:
    tallies = [path for path in paths if is_tally_file(path)]
    wishes = {**asked, "delta": delta}
    try:
        if tallies and len(tallies) < len(paths):
            raise InvalidTypeError(f"{tallies[0]} is a tally beside files with rows: pass either.")
        if tallies:
            tally = reduce(add, map(Tally.load, tallies))
            return _certificate(claim, columns, wishes, tally, options)
        with progress_bar(f"counting {where.rpartition('[')[2].rstrip(']')}") as progress:
            return _certificate(claim, columns, wishes, paths, {**options, "progress": progress})
    except PacboundError as error:
        raise type(error)(f"{where}: {error}") from None


def _certificate(*given: Any) -> Certificate:
    found: Certificate = certify(*given)
    return found


def _files_of(table: Mapping[str, Any], folder: Path) -> list[str]:
    """All files that a claim is made from."""
    named = [table[key] for key in ("files", "tallies", "data", *_TABLES) if key in table]
    beside = [_beside(folder, one) for one in named]
    return [name for one in beside for name in (one if isinstance(one, list) else [one])]


def _beside(folder: Path, named: Any) -> Any:
    """As the file stands where it was written, so do the names in it."""
    if isinstance(named, list):
        return [_beside(folder, one) for one in named]
    if not isinstance(named, str) or "://" in named:
        return named
    return str(folder / named)


def _made(
    where: str,
    verb: Callable[..., Certificate],
    places: list[str],
    options: Mapping[str, Any],
    *,
    counted: bool,
    delta: float,
) -> Certificate:
    try:
        if counted:
            return verb(reduce(add, map(Tally.load, places)), delta=delta, **options)
        with progress_bar(f"counting {where.rpartition('[')[2].rstrip(']')}") as progress:
            return verb(places, delta=delta, progress=progress, **options)
    except PacboundError as error:
        raise type(error)(f"{where}: {error}") from None
