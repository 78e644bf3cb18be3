"""`pacbound verify`: recompute every claim from its counts; let through what a script asks for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pacbound.claims import KINDS
from pacbound.claims.certificate import Certificate, Verification, load_certificate
from pacbound.cli.exit_codes import BAD_INPUT, REFUSED, VERIFICATION_FAILED, complain, ending_well
from pacbound.cli.options import CertificatesArgument, ColumnOption, PatientOption, Reads, option
from pacbound.cli.rows import CLASSES, COUNTED, PIPED, RowChoices, named_columns
from pacbound.cli.streams import print_json
from pacbound.documents import Json, printable
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.stats.arguments import failure_probability, tolerated_rate

if TYPE_CHECKING:
    from pacbound.cli.recount import Recount

# Of several certificates the worst decides: one that does not follow from its counts, then one that
# cannot be read, then one that verifies and is a refusal.
WORST_FIRST = (VERIFICATION_FAILED, BAD_INPUT, REFUSED, 0)


@ending_well
def verify(
    certificates: CertificatesArgument,
    require_certified: Annotated[
        bool, option("--require-certified", "Let no refusal through: exit code 1, not 3.")
    ] = False,
    require_all_groups: Annotated[
        bool,
        option("--require-all-groups", "Let nothing through that leaves a group uncertified."),
    ] = False,
    kind: Annotated[
        list[str] | None, option("Let only this kind through, such as cascade; may be repeated.")
    ] = None,
    max_xi: Annotated[
        float | None, option("Let through an xi of at most this; 1 - target, where there is one.")
    ] = None,
    max_delta: Annotated[
        float | None, option("Let through a chance to be wrong of at most this.")
    ] = None,
    data: Annotated[
        list[str] | None,
        option(
            "Count this file again, and compare. Its columns are named as in the certificate, "
            "unless --column says otherwise; may be repeated."
        ),
        Reads(),
    ] = None,
    column: ColumnOption = None,
    answers: Annotated[
        Path | None, option("Of a batch: the file of the expert's answers, beside --data."), Reads()
    ] = None,
    *,
    rows: Annotated[RowChoices, (*CLASSES, "positive_class", "labels", *PIPED, *COUNTED)],
    patient: PatientOption = False,
    exact: Annotated[
        bool, option("--exact", "Check it again in exact arithmetic, by code that shares nothing.")
    ] = False,
    as_json: Annotated[bool, option("--json", "Print a line for programs for each.")] = False,
) -> int:
    """Recompute every claim from the counts in the certificate, without the data.

    Verified means that the claim follows from the counts. It cannot show that the counts are those
    of the data: --data counts them again and compares.

    Exit code 0: all are verified and certified. 3: all are verified, and one is a refusal. 2: one
    cannot be read. 1: one is not verified, is not let through by --require-certified,
    --require-all-groups, --kind, --max-xi or --max-delta, or has other counts than --data, whatever
    the others are.
    """
    unknown = next((one for one in kind or [] if one not in KINDS), None)
    if unknown is not None:
        raise InvalidValueError(
            f"--kind {printable(unknown)} is not a kind of certificate: expected one of "
            f"{', '.join(sorted(KINDS))}."
        )
    xi = None if max_xi is None else _as_written(tolerated_rate(max_xi))
    delta = None if max_delta is None else _as_written(failure_probability(max_delta))
    gates = Gates(require_certified, require_all_groups, tuple(kind or ()), xi, delta)
    recount = _recount(data, column, answers, rows, len(certificates))
    codes = {
        _verified(path, gates, recount, patient=patient, as_json=as_json) for path in certificates
    }
    if exact:
        codes |= {_exact(path, patient=patient, as_json=as_json) for path in certificates}
    return worst(codes)


def worst(codes: Iterable[int]) -> int:
    """The exit code of several certificates."""
    return min(codes, key=WORST_FIRST.index, default=0)


def _recount(
    data: list[str] | None,
    column: list[str] | None,
    answers: Path | None,
    rows: RowChoices,
    certificates: int,
) -> Recount | None:
    """What to count again; nothing that reads tables is loaded where there is nothing."""
    if not data:
        if column or answers is not None:
            said = "--column names a column" if column else "--answers answers the rows"
            raise InvalidTypeError(f"{said} of --data: pass the file, too.")
        return None
    if certificates != 1:
        raise InvalidTypeError(
            f"--data is for one certificate, and {certificates} were named: do it for each."
        )
    from pacbound.cli.recount import Recount  # noqa: PLC0415

    return Recount(rows.tables(data), named_columns(column), rows.options(), answers)


def read_or_complain(path: Path, *, as_json: bool) -> Certificate | None:
    """The certificate in a file; None once it is said why it cannot be read."""
    try:
        return load_certificate(path)
    except (CertificateError, OSError) as error:
        message = str(error) if isinstance(error, CertificateError) else f"{path}: {error.strerror}"
        if as_json:
            print_json({"certificate": str(path), "ok": False, "error": message})
        complain(message)
        return None


def _verified(
    path: Path, gates: Gates, recount: Recount | None, *, patient: bool, as_json: bool
) -> int:
    certificate = read_or_complain(path, as_json=as_json)
    if certificate is None:
        return BAD_INPUT
    verification = certificate.verify(patient=patient)
    closed = gates.closed(certificate) if verification else []
    found = recount.of(certificate) if recount is not None and verification else None
    wrong = [f"verified, but not let through: {line}" for line in closed]
    if not verification:
        wrong = [str(verification)]
    if found is not None and not found.same:
        listed = "\n".join(f"  {line}" for line in found.lines)
        wrong.append(f"verified, but the data have other counts\n{listed}")
    if as_json:
        beside: dict[str, Json] = {} if not closed else {"not_let_through": closed}
        if found is not None:
            beside["data"] = {
                "same_counts": found.same,
                "same_files": found.same_files,
                "same_columns": found.same_columns,
                "differences": found.lines,
            }
        told = for_programs(certificate, verification, passed=not wrong)
        print_json({"certificate": str(path), **told, **beside})
    elif not wrong:
        verdict = "certified" if certificate.certified else "refused"
        data = "" if found is None else f"; {found}"
        typer.echo(
            f"{path}: verified ({certificate.kind}, {verdict}, counts "
            f"{certificate.counts_digest}){data}"
        )
    for line in wrong:
        complain(f"{path}: {line}")
    if wrong:
        return VERIFICATION_FAILED
    return 0 if certificate.certified else REFUSED


def _exact(path: Path, *, patient: bool, as_json: bool) -> int:
    """What the independent verifier finds; it has the same exit codes."""
    from pacbound import exact_verifier  # noqa: PLC0415

    code, found = exact_verifier.check_file(str(path), patient=patient)
    said = "exact: " + "\n".join(exact_verifier.described(found))
    if as_json:
        print_json({"exact": True, **found})
    elif not code:
        typer.echo(said)
    if code:
        complain(said)
    return code


def for_programs(
    certificate: Certificate, verification: Verification, *, passed: bool
) -> dict[str, Json]:
    """What was found, and of the claim what a program acts on. Nothing of a claim that has not
    passed is repeated: whoever reads only `certified` or `thresholds` must not act on it.
    """
    found: dict[str, Json] = {
        "ok": passed,
        "kind": certificate.kind,
        "certified": passed and certificate.certified,
        "differences": list(verification.differences),
        "digests": {"claim": certificate.claim_digest, "counts": certificate.counts_digest},
    }
    if passed:
        claim = certificate.claim()
        keys = (
            *("procedure", "n", "xi", "claim", "bounded", "target", "delta"),
            *("thresholds", "threshold", "lowest", "highest"),
        )
        found |= {key: claim[key] for key in keys if key in claim}
        found |= certificate.by.thresholds(certificate)
        scale = certificate.provenance.scale
        # Thresholds are of scores from 0 to 1; the columns hold these times the scale.
        found |= {} if scale is None else {"scale": scale}
    return found


@dataclass(frozen=True)
class Gates:
    """What is demanded; a certificate passes if `closed` has no line about it."""

    certified: bool
    all_groups: bool
    kinds: tuple[str, ...]
    xi: Decimal | None
    delta: Decimal | None

    def closed(self, certificate: Certificate) -> list[str]:
        """A line for each demand that a certificate, which verifies, does not meet."""
        lines = []
        if self.certified and not certificate.certified:
            lines.append("it is a refusal, and --require-certified asks for more")
        if self.all_groups:
            lines += [
                f"{found}, and --require-all-groups asks for all of them"
                for found in _uncertified(certificate)
            ]
        if self.kinds and certificate.kind not in self.kinds:
            wanted = " or ".join(self.kinds)
            lines.append(f"its kind is {certificate.kind}, and --kind asks for {wanted}")
        if self.xi is not None:
            lines += [
                f"{found}, and --max-xi asks for at most {self.xi}"
                for found in _above(certificate, self.xi)
            ]
        delta = _as_written(certificate.delta)
        if self.delta is not None and delta > self.delta:
            lines.append(f"delta = {delta}, and --max-delta asks for at most {self.delta}")
        return lines


def _as_written(number: float) -> Decimal:
    """A number as people write it: 1 - 0.95 is 0.05 then, and not a little more."""
    return Decimal(repr(float(number)))


def _uncertified(certificate: Certificate) -> list[str]:
    """Which groups of the certificate, or of a claim of a bundle, nothing is certified for."""
    names = [printable(name) for name in certificate.by.refused_groups(certificate)]
    more = ", …" if len(names) > 5 else ""
    own = [f"groups without a certificate: {', '.join(names[:5])}{more}"]
    inside = certificate.inside.items()
    return (own if names else []) + [
        f"{printable(name)}: {found}" for name, one in inside for found in _uncertified(one)
    ]


def _above(certificate: Certificate, most: Decimal) -> list[str]:
    """What the certificate, or a claim of a bundle, allows beyond `most`."""
    if certificate.inside:
        return [
            f"{printable(name)}: {found}"
            for name, member in certificate.inside.items()
            for found in _above(member, most)
        ]
    claim = certificate.claim()
    if "target" in claim:
        missed = 1 - _as_written(claim["target"])
        return [f"target = {claim['target']} lets {missed} go wrong"] if missed > most else []
    if "xi" not in claim:
        return [f"a {certificate.kind} claims no xi"]
    xi = _as_written(claim["xi"])
    return [f"xi = {xi}"] if xi > most else []
