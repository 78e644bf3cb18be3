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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import starmap
from math import inf, nan
from operator import index
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from pacbound.documents import LARGEST_INTEGER, Json, Reader
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.stats.arguments import real_number
from pacbound.tally.columns import Floats, Integers, Rows, Slot

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


SEED_SCHEMA: Final[Mapping[str, Json]] = {
    "anyOf": [{"type": "integer"}, {"type": "string", "pattern": f"^{_LONG_SEED.pattern}$"}]
}


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


@dataclass(frozen=True)
class Graded:
    """How outcomes were graded and tossed, as a tally and a certificate keep it.

    Attributes
    ----------
    seed : int
        The key of the coins.
    fresh : bool
        Whether the operating system drew it for this call; a file does not say.
    by : str or None
        Who graded: a judge, a rubric, people. None if nobody said.
    scale : tuple of float
        The worst and the best grade.
    ids : str
        What a coin knows a row by: "row_ids", or "places" in one table.

    Examples
    --------
    >>> graded = Graded(by="gpt-judge 3", scale=(1.0, 5.0))
    >>> graded.seed, graded.quality(np.array([1.0, 4.0, 5.0]), "grade")
    (0, array([0.  , 0.75, 1.  ]))
    """

    seed: int = 0
    by: str | None = None
    scale: tuple[float, float] = (0.0, 1.0)
    ids: Ids = "places"
    fresh: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Graded:
        """As the arguments of a public function say."""
        return cls(
            seed_of(given.get("seed")),
            judge_name(given.get("graded_by")),
            scale_of(given.get("quality_scale")),
            "row_ids" if given.get("row_ids") is not None else "places",
            fresh=given.get("seed") is None,
        )

    def quality(self, grades: NDArray[Any], name: str, start: int = 0) -> Floats:
        """Grades as qualities from 0 to 1, NaN where one is missing."""
        worst, best = self.scale
        found = np.asarray(grades, dtype=np.float64)
        bad = np.flatnonzero((found < worst) | (found > best))
        if bad.size:
            raise self.beyond(f"{name}[{start + bad[0]}] is {found[bad[0]]!s}", bad.size)
        return np.asarray((found - worst) / (best - worst))

    def beyond(self, said: str, values: int) -> InvalidValueError:
        """The error for so many grades beyond the scale, after what is said of one of them."""
        worst, best = self.scale
        return InvalidValueError(
            f"{said} ({values} such values): expected grades from {worst:g} to {best:g}. If they "
            "go from 1 to 5, pass quality_scale=(1, 5) (--quality-scale 1,5)."
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
            f"{described(other)}. Count all of them with one judge, one scale and one seed: "
            "tallies that were counted apart have seeds of their own, unless both were passed one."
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
    return f"graded{by} from {graded.scale[0]:g} to {graded.scale[1]:g} with seed {graded.seed}"


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


def scale_of(scale: Any) -> tuple[float, float]:
    """The worst and the best grade: 0 and 1 if nothing is said."""
    if scale is None:
        return 0.0, 1.0
    if isinstance(scale, (str, bytes)) or np.shape(scale) != (2,):
        raise InvalidTypeError(
            f"quality_scale={scale!r} is not a scale: expected the worst and the best grade, such "
            "as (1, 5)."
        )
    worst, best = (real_number(end, "quality_scale", "a grade") for end in scale)
    if not -np.inf < worst < best < np.inf:
        raise InvalidValueError(
            f"quality_scale={scale!r} does not rise: expected the worst grade and then the best, "
            "such as (1, 5). If 1 is the best grade, pass the grades negated."
        )
    return worst, best


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
    return {
        "seed": seed_to_json(graded.seed),
        "by": graded.by,
        "scale": list(graded.scale),
        "ids": graded.ids,
    }


def graded_from(part: Reader) -> Graded:
    """What a document says of how outcomes were graded."""
    worst, best = (*part.numbers("scale"), nan, nan)[:2]
    by = None if part.raw("by") is None else part.text("by")
    fits = len(part.numbers("scale")) == 2 and -inf < worst < best < inf
    named = by is None or (0 < len(by) <= LONGEST_JUDGE and by == by.strip() and by.isprintable())
    if not fits or not named:
        raise CertificateError(f"{part.place('scale' if named else 'by')} has an impossible value.")
    return Graded(seed_from(part), by, (worst, best), part.choice("ids", get_args(Ids)))


class Coins:
    """Tosses the coins of rows, block by block: rows without ids are numbered as they come."""

    def __init__(self, graded: Graded) -> None:
        self._graded = graded
        self._rows = 0

    def tossed(self, rows: Rows) -> Rows:
        """The rows, with a coin for each."""
        toss = coins(self._graded.seed, self._names(rows))
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


def right_by_quality(rows: Rows, slot: str, graded: Graded) -> NDArray[Any]:
    """Whether the coin of each row says that its answer is right, 1 or 0; its quality, where no
    coin was tossed.
    """
    quality = graded.quality(rows.numbers(slot), rows.name(slot), rows.start)
    missing = np.flatnonzero(np.isnan(quality))
    if missing.size:
        raise not_graded(f"{rows.name(slot)}[{rows.start + missing[0]}] is missing", missing.size)
    if COIN not in rows.slots:
        return quality
    return (rows.numbers(COIN) >= 1.0 - quality).astype(np.int64)


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
