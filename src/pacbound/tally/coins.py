"""Keyed numbers; and graded outcomes: a quality from 0 to 1 becomes right or wrong by the toss of a
keyed coin.

The same seed and the same name give the same number, everywhere and for ever. What is drawn or
tossed must not depend on how rows are ordered, cut into parts, or held by an engine, so nothing is
generated in a sequence. The numbers of a name are the first 64 bits of a SHA-256, the next 64 and
so on, of the text "purpose seed name", such as "coin 0 r17". No purpose has a space in it, so that
two uses of one seed share nothing. Engines have this hash themselves, and give the same numbers
where the rows are (`pacbound.tally.frames.keyed_rows`).

Let rows be independent draws with a loss l from 0 to 1, and u uniform, one for each row and
independent of everything. Then 1{u < l} is a loss of 0 or 1 with the same mean on every event of
the inputs, and rows with such losses are independent draws of one law. So every theorem about right
and wrong answers holds, and speaks of the mean loss.

A difference of two qualities, D from -1 to 1, becomes its sign if u < |D|, and 0 else. One u serves
all exits of a row: at any thresholds one exit answers the row, and the mean of its difference is
kept. For a given u the toss never falls as D rises, so where a quality is missing, the largest D
that is possible stands for it, and a claim holds whatever the quality is.

The failure probability is over rows and coins, and the coins are random because the seed is: the
operating system draws it when rows are counted, and whoever passes one has drawn it at random. With
a seed that is fixed once and for all, row i would toss the same coin in every sample of everybody,
and a promise over the coins would be one over nothing. Coins go by the seed and the id of a row,
never by what is in it, and two rows never share one: ids are unique, within a cluster where there
are clusters, whose name is then part of the key. Rows without ids are numbered in one table, and
such tallies do not add.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, starmap
from math import inf
from operator import index
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from pacbound.documents import LARGEST_INTEGER, Json, Reader
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.stats.arguments import real_number
from pacbound.tally.columns import Floats, Integers, Rows, Slot
from pacbound.tally.grids import MOST_GRADES

Purpose = Literal["cluster", "row", "coin", "name", "monitor"]

# Each number is below 2 to the power of this.
BITS: Final = 64

_BYTES: Final = BITS // 8


def keyed_numbers(
    seed: int, purpose: Purpose, names: Iterable[str], *, each: int = 1
) -> NDArray[np.uint64]:
    """`each` numbers from 0 to 2^64 - 1 for every name, a row for each; at most four.

    Whoever does not know the seed cannot tell them from independent and uniform ones.
    """
    keyed, width = hashlib.sha256(keyed_prefix(seed, purpose).encode()), _BYTES * each
    digests = []
    for name in names:
        state = keyed.copy()
        # Half a character, which some files hold, is a name too.
        state.update(name.encode("utf-8", "surrogatepass"))
        digests.append(state.digest()[:width])
    return np.frombuffer(b"".join(digests), dtype=">u8").astype(np.uint64).reshape(-1, each)


def keyed_prefix(seed: int, purpose: Purpose) -> str:
    """What stands before a name where it is hashed."""
    return f"{purpose} {seed} "


def fresh_seed() -> int:
    """A seed that the operating system draws, of 53 bits: every reader of JSON keeps it exactly."""
    return secrets.randbits(53)


_LONGEST_SEED: Final = 1000
_LONG_SEED: Final = re.compile("-?[1-9][0-9]{15,}")


def seed_of(seed: Any) -> int:
    """The seed that was passed, which may be any whole number; a fresh one if none was."""
    if seed is None:
        return fresh_seed()
    try:
        if isinstance(seed, (bool, np.bool_)):
            raise TypeError
        whole = int(seed) if isinstance(seed, float) and seed.is_integer() else index(seed)
    except TypeError:
        raise InvalidTypeError(
            f"seed={seed!r} is not a seed: expected a whole number. To draw the same rows again "
            "pass the seed that the summary names; else leave it out, and one is drawn."
        ) from None
    if abs(whole) >= 10**_LONGEST_SEED:
        raise InvalidValueError(
            f"seed has more than {_LONGEST_SEED} digits: leave it out, and one is drawn."
        )
    return whole


def seed_to_json(seed: int | None) -> Json:
    """A seed as documents hold it: as text where not every reader of JSON keeps it exactly."""
    return seed if seed is None or abs(seed) <= LARGEST_INTEGER else str(seed)


def seed_from(part: Reader) -> int:
    """The seed in a document."""
    value = part.raw("seed")
    text = value if isinstance(value, str) else ""
    is_long = len(text) <= _LONGEST_SEED + 1 and _LONG_SEED.fullmatch(text)
    if is_long and abs(int(text)) > LARGEST_INTEGER:
        return int(text)
    return part.whole("seed")


def name_numbers(names: Iterable[str]) -> NDArray[np.uint64]:
    """A number for every name, whatever the seed of a draw is: names are recognised by it."""
    return keyed_numbers(0, "name", names)[:, 0]


def uniforms(numbers: NDArray[np.uint64]) -> NDArray[np.float64]:
    """The numbers as floats from 0 up to but not including 1, exact to 53 bits."""
    return (numbers >> np.uint64(BITS - 53)).astype(np.float64) * 2.0**-53


# The slot in which judged rows bring their coins.
COIN: Final = "coin"
# The columns by which a coin knows a row.
_NAMED_BY: Final = ("clusters", "row_ids")
LONGEST_JUDGE: Final = 200
Ids = Literal["row_ids", "places"]


# How far a grade may be from the declared one that it stands for, as a share of a step.
NEAR: Final = 1e-6


@dataclass(frozen=True)
class Graded:
    """How outcomes were graded, as a tally and a certificate keep it.

    A scale that lists its grades, such as 1, 2, 3, 4, 5, declares them: each is a level of its own.
    A scale of two ends declares nothing; a grade then counts on the finer level below it.

    Attributes
    ----------
    by : str or None
        Who graded: a judge, a rubric, people. None if nobody said.
    scale : tuple of float
        The worst and the best grade; or all of them, where they are declared.
    seed : int or None
        The key of the coins, where outcomes are tossed for; None where grades are counted.
    ids : str or None
        What a coin knows a row by: "row_ids", or "places" in one table.
    fresh : bool
        Whether the operating system drew the seed for this call; a file does not say.

    Examples
    --------
    >>> graded = Graded(by="gpt-judge 3", scale=(1.0, 5.0))
    >>> graded.quality(np.array([1.0, 4.0, 5.0]), "grade")
    array([0.  , 0.75, 1.  ])
    """

    by: str | None = None
    scale: tuple[float, ...] = (0.0, 1.0)
    seed: int | None = None
    ids: Ids | None = None
    fresh: bool = field(default=False, compare=False)

    @classmethod
    def of(
        cls, given: Mapping[str, Any], *, tossed: bool, scale: tuple[float, ...] | None = None
    ) -> Graded:
        """As the arguments of a public function say; on the `scale` if they say nothing of it."""
        said = given.get("quality_scale")
        own = cls(judge_name(given.get("graded_by")), scale_of(scale if said is None else said))
        if not tossed:
            return own
        if own.declared:
            raise InvalidTypeError(
                f"quality_scale={given['quality_scale']!r} lists grades, and these are tossed for: "
                "pass the worst and the best."
            )
        ids: Ids = "places" if given.get("row_ids") is None else "row_ids"
        fresh = given.get("seed") is None
        return replace(own, seed=seed_of(given.get("seed")), ids=ids, fresh=fresh)

    @property
    def declared(self) -> bool:
        """Whether the scale lists all grades."""
        return len(self.scale) > 2

    def steps(self, fine: int) -> int:
        """The number of the best level: that of the last grade, or `fine` if none are declared."""
        return len(self.scale) - 1 if self.declared else fine

    def quality(self, grades: NDArray[Any], name: str, start: int = 0) -> Floats:
        """Grades as qualities from 0 to 1, NaN where one is missing."""
        worst, best = self.scale[0], self.scale[-1]
        found = np.asarray(grades, dtype=np.float64)
        bad = np.flatnonzero((found < worst) | (found > best))
        if bad.size:
            raise self.beyond(f"{name}[{start + bad[0]}] is {found[bad[0]]!s}", bad.size)
        quality = np.asarray((found - worst) / (best - worst))
        if self.declared:
            places = quality * self.steps(0)
            strange = np.flatnonzero(np.abs(places - np.rint(places)) > NEAR)
            if strange.size:
                where = f"{name}[{start + strange[0]}] is {found[strange[0]]!s}"
                raise self.undeclared(where, strange.size)
        return quality

    def levels(self, quality: NDArray[np.float64], fine: int) -> Integers:
        """The level of each quality: its own where grades are declared, else the one below it."""
        places = quality * self.steps(fine)
        return (np.rint(places) if self.declared else np.floor(places)).astype(np.int64)

    def beyond(self, said: str, values: int) -> InvalidValueError:
        """The error for so many grades beyond the scale, after what is said of one of them."""
        return InvalidValueError(
            f"{said} ({values} such values): expected grades from {self.scale[0]:g} to "
            f"{self.scale[-1]:g}. If they go from 1 to 5, pass quality_scale=(1, 5) "
            "(--quality-scale 1,5)."
        )

    def undeclared(self, said: str, values: int) -> InvalidValueError:
        """The error for so many grades that the scale does not list, after one of them."""
        listed = ", ".join(f"{grade:g}" for grade in self.scale[:12])
        return InvalidValueError(
            f"{said} ({values} such values), and quality_scale lists other grades: {listed}. For "
            "grades between them pass the worst and the best alone."
        )

    @property
    def way(self) -> tuple[object, ...]:
        """What must be the same where tallies add."""
        return self.seed, self.by, self.scale


def require_adding(one: Graded | None, other: Graded | None) -> None:
    """Raise unless rows that were graded like this may be added."""
    if one is None and other is None:
        return
    if one is None or other is None or one.way != other.way:
        raise InvalidValueError(
            f"Outcomes that were graded in different ways do not add: {described(one)} and "
            f"{described(other)}. Count all of them with one judge and one scale; where "
            "coins are tossed, with one seed."
        )
    if "places" in (one.ids, other.ids):
        raise InvalidValueError(
            "Graded rows that are known by their place in a table do not add: the first row of "
            "each table got the same coin. Count all tables together, or pass row_ids that "
            "differ between them."
        )


def described(graded: Graded | None) -> str:
    """How outcomes were graded, for a message."""
    if graded is None:
        return "outcomes that were not graded"
    by = "" if graded.by is None else f" by {graded.by}"
    tossed = "" if graded.seed is None else f" with seed {graded.seed}"
    return f"graded{by} from {graded.scale[0]:g} to {graded.scale[-1]:g}{tossed}"


def judge_name(by: Any) -> str | None:
    """Who graded, as it is kept; None if nobody said."""
    if by is None:
        return None
    text = by.strip() if isinstance(by, str) else ""
    if not text or len(text) > LONGEST_JUDGE or not text.isprintable():
        raise InvalidValueError(
            f"graded_by={by!r} does not say who graded: expected a text on one line, of at most "
            f"{LONGEST_JUDGE} characters, such as 'two annotators' or 'judge-model 2024-05'."
        )
    return text


def scale_of(scale: Any) -> tuple[float, ...]:
    """The worst and the best grade, or all that are declared: 0 and 1 if nothing is said."""
    if scale is None:
        return 0.0, 1.0
    shape = () if isinstance(scale, (str, bytes)) else np.shape(scale)
    if len(shape) != 1 or not 2 <= len(scale) <= MOST_GRADES:
        raise InvalidTypeError(
            f"quality_scale={scale!r} is not a scale: expected the worst and the best grade, such "
            "as (1, 5); or all that there are, (1, 2, 3, 4, 5)."
        )
    grades = tuple(real_number(grade, "quality_scale", "a grade") for grade in scale)
    if not is_scale(grades):
        raise InvalidValueError(
            f"quality_scale={scale!r} does not rise in equal steps: expected the worst grade first "
            "and the best last, such as (1, 5) or (1, 2, 3, 4, 5). If 1 is the best grade, pass "
            "the grades negated."
        )
    return grades


def is_scale(grades: Sequence[float]) -> bool:
    """Whether grades rise from a worst to a best one in equal steps."""
    if not 2 <= len(grades) <= MOST_GRADES or not -inf < grades[0] < grades[-1] < inf:
        return False
    step = (grades[-1] - grades[0]) / (len(grades) - 1)
    return all(abs(b - a - step) <= NEAR * step for a, b in pairwise(grades))


def coins(seed: int, names: Iterable[str]) -> Floats:
    """The coin of each row: a number from 0 up to but not including 1, by its name.

    Examples
    --------
    >>> coins(0, ["0", "6"])
    array([0.67572076, 0.06404608])
    """
    return uniforms(keyed_numbers(seed, "coin", names)[:, 0])


def name_in_cluster(cluster: str, row: str) -> str:
    """The name of a row whose id is unique within its cluster: no two pairs have the same, since it
    begins with the number of bytes of the cluster's.

    Examples
    --------
    >>> name_in_cluster("p7", "3")
    '2 p7 3'
    """
    return f"{len(cluster.encode('utf-8', 'surrogatepass'))} {cluster} {row}"


def graded_to_dict(graded: Graded) -> dict[str, Json]:
    """As documents hold it."""
    tossed = {} if graded.seed is None else {"seed": seed_to_json(graded.seed), "ids": graded.ids}
    return {"by": graded.by, "scale": list(graded.scale), **tossed}


def graded_from(part: Reader) -> Graded:
    """What a document says of how outcomes were graded."""
    scale = part.numbers("scale")
    by = None if part.raw("by") is None else part.text("by")
    named = by is None or (0 < len(by) <= LONGEST_JUDGE and by == by.strip() and by.isprintable())
    if not is_scale(scale) or not named:
        raise CertificateError(f"{part.place('scale' if named else 'by')} has an impossible value.")
    if not part.has("seed"):
        return Graded(by, tuple(scale))
    return Graded(by, tuple(scale), seed_from(part), part.choice("ids", get_args(Ids)))


class Coins:
    """Tosses the coins of rows, block by block: rows without ids are numbered as they come."""

    def __init__(self, graded: Graded) -> None:
        self._graded = graded
        self._rows = 0

    def tossed(self, rows: Rows) -> Rows:
        """The rows, with a coin for each."""
        toss = coins(self._graded.seed or 0, self._names(rows))
        self._rows += len(rows)
        slots = {**rows.slots, COIN: Slot("number", COIN)}
        return replace(rows, slots=slots, columns={**rows.columns, COIN: toss})

    def _names(self, rows: Rows) -> Iterable[str]:
        places = map(str, range(self._rows, self._rows + len(rows)))
        own = _texts(rows, "row_ids") if "row_ids" in rows.slots else list(places)
        if "clusters" not in rows.slots:
            return own
        return starmap(name_in_cluster, zip(_texts(rows, "clusters"), own, strict=True))


def _texts(rows: Rows, slot: str) -> list[str]:
    """The names in a column as text: 7, 7.0 and "7" are one."""
    names, places = rows.groups(slot)
    return [names[place] for place in places.tolist()]


def coin_slots(slots: Mapping[str, Slot]) -> dict[str, Slot]:
    """The columns by which coins know rows, of those that a draw goes by."""
    return {name: slots[name] for name in _NAMED_BY if name in slots}


def graded_quality(rows: Rows, slot: str, graded: Graded) -> Floats:
    """The quality of each row's answer; no grade may be missing."""
    quality = graded.quality(rows.numbers(slot), rows.name(slot), rows.start)
    missing = np.flatnonzero(np.isnan(quality))
    if missing.size:
        raise not_graded(f"{rows.name(slot)}[{rows.start + missing[0]}] is missing", missing.size)
    return quality


def not_graded(said: str, rows: int) -> InvalidValueError:
    """The error for so many rows without a grade."""
    return InvalidValueError(
        f"{said} ({rows} such rows): every row needs a quality. Grade them; to drop rows because "
        "they were not graded voids the guarantee unless that has nothing to do with how good they "
        "are."
    )


def not_preferred(said: str, rows: int, known: Iterable[str]) -> InvalidValueError:
    """The error for so many rows whose preferred model is not one of those that are known."""
    listed = ", ".join(map(repr, known))
    return InvalidValueError(f"{said} ({rows} such rows): expected one of {listed}, or nothing.")


def tossed_differences(coin: Floats, better: Floats, worse: Floats) -> tuple[Integers, Integers]:
    """The toss of the difference `better` - `worse` of two qualities: -1, 0 or 1; the highest and
    the lowest that it can be, which are the same where both qualities are known.

    Examples
    --------
    >>> coin = np.array([0.064, 0.064, 0.064])
    >>> tossed_differences(coin, np.array([0.25, 0.05, 0.0]), np.array([0.0, 0.0, 0.07]))[0]
    array([ 1,  0, -1])
    """
    high = np.where(np.isnan(better), 1.0, better) - np.where(np.isnan(worse), 0.0, worse)
    low = np.where(np.isnan(better), 0.0, better) - np.where(np.isnan(worse), 1.0, worse)
    return tossed_sign(coin, high), tossed_sign(coin, low)


def tossed_sign(coin: Floats, difference: Floats) -> Integers:
    """The sign of each difference if its coin is below its size, and 0 else."""
    return np.where(coin < np.abs(difference), np.sign(difference), 0.0).astype(np.int64)
