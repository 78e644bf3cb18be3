"""Drawing rows before they are judged, where rows are not independent draws from the law of use.

What is drawn is decided by a seed and by names, of clusters or of rows, never by scores, and by
labels only where a claim is about the rows of one outcome. The operating system draws the seed when
rows are counted, or it was passed and drawn at random before: it is independent of the rows, so
that given the rows the drawn ones have the law that follows, whatever the table holds. With a seed
that is the same for everybody nothing would be random where the rows of all clusters look alike:
the claim would be false in every sample, or in none. The rows that are left are then independent
draws from one law, and everything that is proven for such rows holds for them, about that law, with
n the number of rows that are left. Where labels or grades are still missing the seed must have been
passed: the next look repeats the draw, and a new one at each look would be another chance each.

**Clusters.** Clusters (patients, videos, speakers) are independent draws; the rows of one are not.
One row is drawn from each, uniformly. Rows from different clusters are independent, and each has
the law "a random row of a random cluster", in which a large cluster weighs no more than a small
one. With a bound S on the sizes of all clusters that there can be, the row of a cluster of s rows
is kept with probability s/S. For a set A of rows, P(in A and kept) = E[(rows of A)/s * s/S], which
is E[rows of A]/S: given that it is kept, the row has the law of a random row.

**Clusters in groups.** A patient with one MRI and nine CT rows would hardly ever be seen in the
group of MRI. So without a bound one row is drawn from each cluster for each group in which it has
any, uniformly. Given which clusters have a row in a group, the rows drawn there are independent,
each a random row of the group from a random cluster that has one. Nothing is said about several
groups at once, whose rows may be of one cluster: they share delta by addition, and one number for
each cluster may serve all its groups. The bins of a calibration are groups too. With a bound the
kept rows are random rows, and those of disjoint groups are independent as they are.

**Clusters among the trials.** A claim about the rows of one outcome, such as the positives, draws
one of these from each cluster that has any, uniformly. Given which clusters have one, the drawn
rows are independent, each a random positive row of a random cluster that has one. The number of
positives of a cluster takes the place of its size: with a bound S the row is kept with probability
(positives of the cluster)/S, not size/S. All rows of other outcomes are counted as they are, for
the shares that are reported; nothing is claimed about them. When to stop collecting may depend only
on *whether* each completed cluster has a positive.

**Weights.** Rows are independent draws from p and the claim shall be about q, where w is
proportional to q/p and at most B wherever p can draw. A row is kept with probability w/B:
P(in A and kept) is the integral of w/B over A under p, which is proportional to q(A). Given how
many are kept, they are independent draws from q. B must be known beforehand: the largest weight of
a sample is too small, and a claim from it may be wrong far more often than delta.

**Row ids.** A name for each row, by which the draw knows it in whatever order rows come. Also where
nothing is drawn: two rows of one id are one row that counts twice, by a merge that doubled it, say,
and are refused. Within a cluster ids must differ, and without clusters all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from pacbound.documents import Reader
from pacbound.errors import InvalidTypeError, InvalidValueError, RepeatedSourceError
from pacbound.stats.arguments import real_number, whole_number
from pacbound.tally.classes import is_missing_code
from pacbound.tally.columns import ARRAY, Floats, Integers, Rows, Slot, ask_about_spaces
from pacbound.tally.grades import Graded
from pacbound.tally.grids import AtomBins, Bins, DyadicGrid
from pacbound.tally.keyed_numbers import (
    BITS,
    keyed_numbers,
    name_numbers,
    seed_from,
    seed_of,
    uniforms,
)
from pacbound.tally.questions.question import Question
from pacbound.tally.row_options import DRAWN_BY, options_about

By = Literal["clusters", "weights"]
# The columns by which rows are drawn here.
CHOOSING: Final[tuple[By, ...]] = ("clusters", "weights")
# What one row was drawn from, where rows were drawn by clusters.
Each = Literal["cluster", "cluster-and-group", "cluster-and-bin", "cluster-group-and-bin"]
Numbers = NDArray[np.uint64]
Flags = NDArray[np.bool_]
# The id of the row at a place, for a message.
NameAt = Callable[[int], str]


# Among how many clusters those are looked for whose names differ in spaces only.
_LOOKED_AT: Final = 100_000
_NO_NAMES: Final[Numbers] = np.zeros(0, dtype=np.uint64)

# Beyond it engines cannot tell exactly which clusters are kept.
_LARGEST_BOUND: Final = 2**37

# Names are digested in buckets, by the first hexadecimal digits of their hash.
BUCKET_DIGITS: Final = 3


@dataclass(frozen=True)
class Drawn:
    """What was drawn from what, as a tally and a certificate keep it.

    Attributes
    ----------
    by : str
        "clusters" or "weights".
    rows : int
        The number of rows before the draw.
    units : int
        The number of clusters; of rows, where each row stands for itself.
    seed : int or None
        The key of the draw.
    bound : float or None
        The bound on the weights, or on the sizes of the clusters.
    names : ndarray of uint64
        A hash of the name of each unit, cluster or row, in order, by which a tally that has one of
        them again is recognised. A certificate has none.
    row_ids : ndarray of uint64
        For clusters whose rows have ids: a hash of each id, in order. A certificate has none.
    among : tuple of (str, int)
        Clusters among the trials: the outcomes of which one row was drawn from each cluster that
        has any, in order, each with the number of such rows before the draw. All other rows were
        counted. Empty if one row of each cluster was drawn before labels were looked at.
    stayed : tuple of (str, str)
        The digests of names that were too many to leave their engine, by the role of the names.
    fresh : bool
        Whether the operating system drew the seed for this call; a file does not say.
    each : str
        For clusters, what one row was drawn from: "cluster", "cluster-and-group",
        "cluster-and-bin" or "cluster-group-and-bin".
    spanning : int or None
        For clusters whose rows have groups: how many of them have rows in more than one, of the
        rows that could be drawn.

    Examples
    --------
    >>> Drawn("clusters", rows=1200, units=85, seed=0).by
    'clusters'
    """

    by: By
    rows: int
    units: int
    seed: int | None = None
    bound: float | None = None
    names: Numbers = field(default_factory=lambda: _NO_NAMES, compare=False, repr=False)
    row_ids: Numbers = field(default_factory=lambda: _NO_NAMES, compare=False, repr=False)
    among: tuple[tuple[str, int], ...] = ()
    stayed: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    fresh: bool = field(default=False, compare=False, repr=False)
    each: Each = "cluster"
    spanning: int | None = None

    @property
    def apart(self) -> bool:
        """Whether a cluster gives a row for each of several tables or cells, which then depend on
        each other.
        """
        return self.each != "cluster"

    @property
    def candidates(self) -> int:
        """How many rows could be drawn: all, or those of the outcomes that were drawn among."""
        return sum(rows for _, rows in self.among) if self.among else self.rows

    @property
    def others(self) -> int:
        """How many rows were counted though nothing was drawn from them: of other outcomes."""
        return self.rows - self.candidates

    def digests(self) -> dict[str, str]:
        """A digest of all names that decided what was drawn, under "cluster" and "row_id". It is
        the same for every seed, and another one if a name is spelt otherwise.
        """
        of_rows = self.names if self.by == "weights" else self.row_ids
        of_clusters = self.names if self.by == "clusters" else _NO_NAMES
        found = {
            role: digest_of_names(numbers)
            for role, numbers in (("cluster", of_clusters), ("row_id", of_rows))
            if numbers.size
        }
        return {**found, **dict(self.stayed)}

    @property
    def way(self) -> tuple[object, ...]:
        """How it was drawn: tallies add only if they were drawn in the same way."""
        return self.by, self.seed, self.bound, self.each, *dict(self.among)

    def __add__(self, other: Drawn) -> Drawn:
        """What was drawn from two tables that share no cluster and no row."""
        if self.rows and other.rows and (self.stayed or other.stayed):
            raise names_stayed()
        if self.by == "weights" and self.rows and other.rows and not (self.named and other.named):
            raise InvalidValueError(
                "Rows that were kept by their weights and their place in a table do not add: the "
                "first row of each table got the same random number. Count all tables together, "
                "or pass row_ids that differ between them."
            )
        twice = np.intersect1d(self.names, other.names)
        if twice.size:
            what = "clusters" if self.by == "clusters" else "row ids"
            raise RepeatedSourceError(
                f"{twice.size} {what} are in both tallies: their rows are not independent, which "
                "voids every guarantee. Count all rows of a cluster, and each row once, in one "
                "tally."
            )
        if self.rows and other.rows and bool(self.row_ids.size) != bool(other.row_ids.size):
            raise InvalidValueError(
                "The rows of one tally have row_ids, and those of the other have none, so that "
                "they were drawn in different ways. Count all of them with row_ids, or without."
            )
        names = np.sort(np.concatenate([self.names, other.names]))
        row_ids = np.sort(np.concatenate([self.row_ids, other.row_ids]))
        rows, units = self.rows + other.rows, self.units + other.units
        both = zip(self.among, other.among, strict=True)
        among = tuple((name, here + there) for (name, here), (_, there) in both)
        stayed = self.stayed + other.stayed
        spanning = None if self.spanning is None else self.spanning + (other.spanning or 0)
        return Drawn(
            self.by,
            rows,
            units,
            self.seed,
            self.bound,
            names,
            row_ids,
            among,
            stayed,
            each=self.each,
            spanning=spanning,
        )

    @property
    def named(self) -> bool:
        """Whether each unit has a name, and not just a place in a table."""
        return len(self.names) == self.units or bool(self.stayed)

    def fits(self, kept: int) -> bool:
        """Whether `kept` rows can have been drawn like this; what a file says need not be so."""
        if self.seed is None or self.units > self.rows:
            return False
        if not 0 <= (self.spanning or 0) <= self.units or (self.apart and self.bound is not None):
            return False
        if self.among:
            return self.by == "clusters" and self._fits_among(kept)
        if self.apart:
            return self.by == "clusters" and self.units + (self.spanning or 0) <= kept <= self.rows
        if kept > self.units:
            return False
        if self.by == "weights":
            return self.bound is not None and 0 < self.bound < np.inf and self.units == self.rows
        if self.bound is None:
            return kept == self.units
        return self.bound >= 1 and self.rows <= self.units * self.bound

    def _fits_among(self, kept: int) -> bool:
        """At most one row of each outcome is drawn from a cluster, and all others are counted."""
        trials, most = self.candidates, len(self.among) * self.units
        most = trials if self.apart else most
        drawn = kept - self.others
        if trials > self.rows or not 0 <= drawn <= min(trials, most):
            return False
        if self.bound is None:
            return drawn > 0 or trials == 0
        return self.bound >= 1 and trials <= most * self.bound

    def none(self) -> Drawn:
        """The same way, with nothing drawn yet."""
        among = tuple((name, 0) for name, _ in self.among)
        spanning = None if self.spanning is None else 0
        return Drawn(
            self.by, 0, 0, self.seed, self.bound, among=among, each=self.each, spanning=spanning
        )


def names_stayed() -> InvalidValueError:
    """Names that were too many to leave their engine are in no tally."""
    return InvalidValueError(
        "The names of so many rows stayed in their engine, so that nothing tells whether a row is "
        "in both tallies. Count all tables together."
    )


def digest_of_names(numbers: Numbers) -> str:
    """A digest of hashes in order: the SHA-256 of those of all buckets that are not empty, so that
    an engine can make each where the names are.
    """
    buckets = (numbers >> np.uint64(BITS - 4 * BUCKET_DIGITS)).astype(np.int64)
    ends = [*np.flatnonzero(np.diff(buckets)) + 1, len(numbers)]
    whole, start = hashlib.sha256(), 0
    for end in ends:
        whole.update(hashlib.sha256(numbers[start:end].astype(">u8").data).digest())
        start = end
    return f"sha256:{whole.hexdigest()}"


@dataclass(frozen=True)
class Draw:
    """How rows are to be drawn: by what, and which columns say so. With "rows" all are counted, and
    only their ids are looked at.
    """

    by: By | Literal["rows"]
    slots: Mapping[str, Slot]
    seed: int
    bound: float | None = None
    # Whether the operating system drew the seed for this call.
    fresh: bool = False
    # What tells the rows of each outcome that clusters are drawn among; None for all rows.
    trials: Callable[[Rows], Mapping[str, Flags]] | None = None
    # The bins of which each has a row of each cluster; None where there are none.
    bins: Bins | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any], question: Question, *, columns: bool) -> Draw:
        """The draw that the arguments of a public function ask for.

        `columns` says that data are named by their columns, and not passed.
        """
        asked = options_about("draw", given)
        _require_drawable(question, asked)
        ways: list[By] = [by for by in CHOOSING if by in asked]
        if not ways and asked.keys() == {"row_ids"}:
            return cls("rows", draw_slots(asked, columns=columns), seed=0)
        if not ways:
            for name in asked:
                raise InvalidTypeError(
                    f"{name} says how rows are drawn, and nothing says by what: pass clusters or "
                    "weights with it, or leave it out."
                )
            return EVERY_ROW
        if len(ways) > 1:
            raise InvalidTypeError(
                f"{ways[0]} and {ways[1]} do not go together: what a claim is about would depend "
                "on which was drawn first. Pass one of them."
            )
        (by,) = ways
        _refuse_strange_options(by, asked)
        if isinstance(question.grid, AtomBins):
            raise InvalidValueError(
                f"edges taken from the counted scores do not go with {by}: rows that are not drawn "
                "would move them. Pass edges from other data."
            )
        slots, bound = draw_slots(asked, columns=columns), _bound(by, asked)
        fresh = asked.get("seed") is None
        draw = cls(by, slots, seed_of(asked.get("seed")), bound, fresh)
        return draw._for(question) if by == "clusters" else draw

    def _for(self, question: Question) -> Draw:
        """The same draw by clusters, with what of the rows it must know for a question."""
        if self.bound is None and question.scope == "overlapping-groups":
            raise InvalidTypeError(
                "clusters cannot be combined with groups that overlap: one row of a cluster would "
                "not do for all of them. Certify each group by itself, with delta divided by their "
                "number, or declare cluster_bound, the most rows that a cluster can have."
            )
        if question.scope == "all-labels":
            raise InvalidTypeError(
                "clusters cannot be combined with a table for every label, in which each row is in "
                "a bin of every table: use the scope 'per-class', or 'top'."
            )
        each, grid = unit_of(question.scope, question.grid, self.bound), question.grid
        needed = {
            "groups": question.scope == "groups" or "group" in each,
            "confidence": "bin" in each,
        }
        added = [name for name in needed if needed[name] and name in question.slots]
        slots = {**self.slots, **{name: question.slots[name] for name in added}}
        bins = grid if "bin" in each and not isinstance(grid, DyadicGrid) else None
        if not question.among:
            return replace(self, slots=slots, bins=bins)
        slots |= question.trial_slots
        return replace(self, slots=slots, bins=bins, trials=question.trials_among)

    @property
    def each(self) -> Each:
        """What one row is drawn from."""
        if self.by != "clusters" or self.bound is not None:
            return "cluster"
        return _EACH["groups" in self.slots, self.bins is not None]

    @property
    def chooses(self) -> bool:
        """Whether rows are drawn, and not all counted."""
        return self.by != "rows"

    @property
    def looks_at_ids(self) -> bool:
        """Whether all rows are counted, and none of their ids may be there twice."""
        return not self.chooses and "row_ids" in self.slots

    @property
    def goes_by_place(self) -> bool:
        """Whether rows are known by their place in the table alone."""
        return "row_ids" not in self.slots


_EACH: Final[Mapping[tuple[bool, bool], Each]] = {
    (False, False): "cluster",
    (True, False): "cluster-and-group",
    (False, True): "cluster-and-bin",
    (True, True): "cluster-group-and-bin",
}


def unit_of(scope: str, grid: Bins | DyadicGrid, bound: float | None) -> Each:
    """What one row of is drawn by clusters, for tables of a scope and cells of a grid. A threshold
    is chosen among the cells of its grid, so that only the bins of a calibration are apart.
    """
    if bound is not None:
        return "cluster"
    binned = not isinstance(grid, DyadicGrid) and grid.n_cells > 1
    return _EACH[scope in ("groups", "per-class"), binned]


# All rows are counted as they are.
EVERY_ROW: Final = Draw("rows", {}, seed=0)


def _require_drawable(question: Question, asked: Mapping[str, Any]) -> None:
    """Raise if rows are to be drawn of which several belong together."""
    for name in asked if question.judged_at_once else ():
        raise InvalidTypeError(
            f"{name} is about rows that are drawn one by one, and several rows are of one rollout "
            "here: draw whole rollouts beforehand, and leave it out."
        )


@dataclass(frozen=True)
class Unused:
    """What a monitor draws from clusters that were not used before: the places of the rows, rising;
    the number of the cluster of each; and a hash of the name of each cluster that is used now,
    whether its row was kept or not, in order.
    """

    places: Integers
    clusters: Integers
    used: Numbers


class Candidates:
    """The rows that may be drawn, block by block, by what the draw goes by and nothing else."""

    def __init__(self, draw: Draw, name_at: NameAt) -> None:
        self._draw = draw
        self._name_at = name_at
        self._rows = 0
        self._clusters: dict[str, int] = {}
        self._codes: list[Integers] = []
        self._groups: dict[str, int] = {}
        self._group_codes: list[Integers] = []
        self._bins: list[Integers] = []
        self._weights: list[Floats] = []
        self._ids: list[Numbers] = []
        self._id_names: list[Numbers] = []
        self._trials: dict[str, list[Flags]] = {}
        self._told = hashlib.sha256(b"pacbound draw 1" + draw.by.encode())

    def take(self, rows: Rows) -> None:
        """Take the next rows, in the columns of the draw."""
        if self._draw.by == "clusters":
            names, places = _named(rows, "clusters")
            self._tell(places, names)
            self._codes.append(_numbered(self._clusters, names, places))
            if "groups" in self._draw.slots:
                self._group_codes.append(_numbered(self._groups, *rows.groups("groups")))
            if self._draw.bins is not None:
                self._bins.append(self._draw.bins.cells(rows.scores("confidence")))
            if self._draw.trials is not None:
                for name, flags in self._draw.trials(rows).items():
                    self._trials.setdefault(name, []).append(flags)
        elif self._draw.by == "weights":
            self._weights.append(_checked_weights(rows, self._draw.bound or 0.0))
            self._tell(self._weights[-1])
        if "row_ids" in self._draw.slots:
            names, places = _named(rows, "row_ids")
            ask_about_spaces(islice(names, 0 if self._rows else _LOOKED_AT), "row_ids")
            self._ids.append(keyed_numbers(self._draw.seed, "row", names, each=2)[places])
            if self._draw.chooses:
                self._tell(places, names)
                self._id_names.append(name_numbers(names)[places])
        elif self._draw.by == "weights":
            places_in_table = map(str, range(self._rows, self._rows + len(rows)))
            self._ids.append(keyed_numbers(self._draw.seed, "row", places_in_table, each=2))
        self._rows += len(rows)

    def ids(self) -> Numbers:
        """A hash of the id of each row, in order, if all are different."""
        ids, codes = self._numbers()
        self._ordered(ids, codes)
        return np.sort(ids[:, 0])

    def chosen(self) -> tuple[Integers, Drawn]:
        """The places of the rows that are drawn, rising, and what they were drawn from."""
        ask_about_spaces(islice(self._clusters, _LOOKED_AT), "clusters")
        ids, codes = self._numbers()
        order = self._ordered(ids, codes)
        clustered = self._draw.by == "clusters"
        places, drawn = self._by_cluster(codes, order) if clustered else self._kept(ids)
        weightless = self._draw.by == "weights" and not any(map(np.any, self._weights))
        require_some_kept(drawn, len(places), weightless=weightless)
        return places, drawn

    @property
    def forecast(self) -> str | None:
        """How many rows will be left, before they are drawn."""
        sizes = {name: sum(int(f.sum()) for f in flags) for name, flags in self._trials.items()}
        return forecast(self._draw, sizes, self._rows, len(self._clusters))

    @property
    def name(self) -> str:
        """A name for the rows that are drawn from, whatever the seed: by what the draw goes by."""
        return f"{ARRAY}sha256:{self._told.hexdigest()}"

    @property
    def _row_ids(self) -> Numbers:
        return np.sort(np.concatenate([_NO_NAMES, *self._id_names]))

    def _numbers(self) -> tuple[Numbers, Integers]:
        """Two numbers for each row, by its id or its place, and the number of its cluster."""
        ids = np.concatenate([np.zeros((0, 2), dtype=np.uint64), *self._ids])
        return ids, np.concatenate([np.zeros(0, dtype=np.int64), *self._codes])

    def _ordered(self, ids: Numbers, codes: Integers) -> Integers | None:
        """Rows that have ids in an order of their own, whatever order they came in; an id that is
        there twice raises.
        """
        if "row_ids" not in self._draw.slots:
            return None
        order = np.lexsort((ids[:, 1], ids[:, 0], *([codes] if self._codes else [])))
        same = (ids[order[1:]] == ids[order[:-1]]).all(axis=1)
        where = ""
        if self._codes:
            same &= np.diff(codes[order]) == 0
            where = " in one cluster"
        _refuse_repeated(order, same, self._draw.slots["row_ids"].name, self._name_at, where)
        return order

    def _tell(self, column: NDArray[Any], names: tuple[str, ...] = ()) -> None:
        self._told.update("\0".join(names).encode("utf-8", "surrogatepass"))
        self._told.update(np.ascontiguousarray(column.astype("<f8")).data)

    def _by_cluster(self, codes: Integers, order: Integers | None) -> tuple[Integers, Drawn]:
        draw, names = self._draw, list(self._clusters)
        trials = self._flags
        other = ~np.logical_or.reduce([*trials.values()]) if trials else np.zeros(0, dtype=bool)
        numbers = keyed_numbers(draw.seed, "cluster", names, each=2)
        drawn_rows = self._one_of_each(codes, order, numbers)
        places = np.concatenate([np.flatnonzero(other), drawn_rows])
        among = tuple((name, int(flags.sum())) for name, flags in sorted(trials.items()))
        known, of_rows = np.sort(name_numbers(names)), self._row_ids
        drawn = Drawn(
            "clusters",
            self._rows,
            len(names),
            draw.seed,
            draw.bound,
            known,
            of_rows,
            among,
            each=draw.each,
            spanning=self._spanning(codes),
        )
        return np.sort(places), drawn

    def unused(self, used: Numbers) -> Unused:
        """For a monitor: the rows that are drawn from clusters that were not used before."""
        names = list(self._clusters)
        _, codes = self._numbers()
        known = name_numbers(names)
        order = np.flatnonzero(~np.isin(known, used)[codes])
        numbers = keyed_numbers(self._draw.seed, "monitor", names, each=2)
        drawn_from = np.unique(codes[order[self._may_be_drawn(codes)[order]]])
        places = np.sort(self._one_of_each(codes, order, numbers))
        return Unused(places, codes[places], np.sort(known[drawn_from]))

    def _may_be_drawn(self, codes: Integers) -> Flags:
        """Which rows are of an outcome that clusters are drawn among; all, if of any."""
        trials = self._flags
        every = np.ones(codes.shape, dtype=bool)
        return np.logical_or.reduce([*trials.values()]) if trials else every

    def _spanning(self, codes: Integers) -> int | None:
        """How many clusters could give rows in more than one group; None without groups."""
        if "groups" not in self._draw.slots:
            return None
        groups = np.concatenate([np.zeros(0, dtype=np.int64), *self._group_codes])
        pairs = np.unique((codes * len(self._groups) + groups)[self._may_be_drawn(codes)])
        return int((np.bincount(pairs // max(1, len(self._groups))) > 1).sum())

    def _units(self, codes: Integers) -> tuple[Integers, Integers]:
        """The number of what a row is drawn from, for each row: its cluster, or the rows of its
        cluster in its group and bin; and the cluster of each of these.
        """
        parts = np.zeros(codes.shape, dtype=np.int64)
        if "group" in self._draw.each:
            parts = np.concatenate([parts[:0], *self._group_codes])
        if self._draw.bins is not None:
            parts = parts * self._draw.bins.n_cells + np.concatenate([parts[:0], *self._bins])
        many = int(parts.max(initial=0)) + 1
        units, own = np.unique(codes * many + parts, return_inverse=True)
        return own, units // many

    @property
    def _flags(self) -> dict[str, Flags]:
        """Which rows are of each outcome that clusters are drawn among; none for all rows."""
        return {name: np.concatenate(flags) for name, flags in self._trials.items()}

    def _one_of_each(self, codes: Integers, order: Integers | None, numbers: Numbers) -> Integers:
        """One row of each cluster, or of its rows in each group or bin; of each outcome that
        clusters are drawn among, one of each that has any.
        """
        units, cluster_of = self._units(codes)
        order = np.arange(len(codes)) if order is None else order
        order = order[np.argsort(units[order], kind="stable")]
        trials, numbers = self._flags, numbers[cluster_of]
        if not trials:
            return self._one_each(units, order, numbers)
        return np.concatenate(
            [
                self._one_each(units, order[flags[order]], numbers, f"{name} ")
                for name, flags in trials.items()
            ]
        )

    def _one_each(
        self, codes: Integers, order: Integers, numbers: Numbers, what: str = ""
    ) -> Integers:
        """The place of one row of each unit, of the rows in `order`, which are side by side where
        they are of one; `what` they are, for the message. With a bound a unit is a cluster.
        """
        names, bound = list(self._clusters), self._draw.bound
        sizes = np.bincount(codes[order], minlength=len(numbers))
        within = [n * size >> BITS for n, size in _pairs(numbers[:, 0], sizes)]
        chosen = np.cumsum(sizes) - sizes + np.array(within, dtype=np.int64)
        kept = sizes > 0
        if bound is not None:
            largest = int(sizes.max(initial=0))
            if largest > bound:
                raise cluster_too_large(names[int(sizes.argmax())], largest, what, bound)
            pairs = _pairs(numbers[:, 1], sizes)
            kept &= np.array([n * int(bound) < size << BITS for n, size in pairs], dtype=bool)
        return np.asarray(order[chosen[kept]], dtype=np.int64)

    def _kept(self, ids: Numbers) -> tuple[Integers, Drawn]:
        draw, weights = self._draw, np.concatenate([np.zeros(0), *self._weights])
        kept = uniforms(ids[:, 0]) < weights / draw.bound
        drawn = Drawn("weights", self._rows, self._rows, draw.seed, draw.bound, self._row_ids)
        return np.flatnonzero(kept), drawn


def _refuse_repeated(
    order: Integers, same: NDArray[np.bool_], column: str, name_at: NameAt, where: str = ""
) -> None:
    """Refuse two rows of one id. `order` are the rows, those of one id side by side, and `same`
    says of each but the first whether it has the id of the one before.
    """
    if not same.any():
        return
    first = int(same.argmax())
    run = same[first:]
    times = 1 + (len(run) if run.all() else int((~run).argmax()))
    rows = sorted(order[first : first + times].tolist())
    begins = same & ~np.concatenate([[False], same[:-1]])
    places = f"{where}, first in rows {rows[0]} and {rows[1]}"
    raise repeated_id(column, name_at(rows[0]), times, places, int(begins.sum()))


def repeated_id(column: str, name: str, times: int, where: str, ids: int) -> InvalidValueError:
    """The error for an id that is there several times, of so many such ids."""
    return InvalidValueError(
        f"{column} holds {name!r} {times:,} times{where} ({ids:,} such ids): each row needs an id "
        "of its own. A row that counts twice, after a merge that doubled it, say, voids every "
        "guarantee: keep one of each."
    )


def cluster_too_large(name: str, rows: int, what: str, bound: float) -> InvalidValueError:
    """The error for a cluster with more rows than its bound; `what` they are."""
    return InvalidValueError(
        f"Cluster {name!r} has {rows} {what}rows, more than cluster_bound={bound:g}: the bound "
        "must hold for every cluster that there can be. Find one that does without looking at "
        "these rows, or leave it out: the claim is then about clusters."
    )


def require_some_kept(drawn: Drawn, kept: int, *, weightless: bool) -> None:
    """Raise if none of the rows that could be drawn is among those that were kept."""
    if not drawn.candidates or kept != drawn.others:
        return
    why = (
        "every weight is 0. Pass the weights of these rows."
        if weightless
        else f"the bound {drawn.bound:g} is far above what was seen. Collect more rows."
    )
    raise InvalidValueError(
        f"None of {drawn.units:,} {_UNITS[drawn.by]} was kept, so that there is nothing to "
        f"certify: {why} Keep seed={drawn.seed} for these rows: to try another seed, or a bound "
        "from these rows, would void the guarantee."
    )


def refuse_fresh_seed(drawn: Drawn | None, graded: Graded | None) -> None:
    """Raise where labels or grades are missing, if the seed was drawn for this call: the next look
    must repeat the draw.
    """
    if drawn is not None and drawn.fresh:
        what = "labels" if graded is None else "grades"
        raise InvalidValueError(
            f"Some rows still lack their {what}, and rows are drawn here: every look at more "
            f"{what} must repeat the same draw. Pass seed={drawn.seed} (--seed {drawn.seed}), "
            "which the operating system has just drawn, now and at every later look."
        )


def forecast(draw: Draw, sizes: Mapping[str, int], rows: int, clusters: int) -> str | None:
    """How many rows will be left, before they are drawn: what the sizes of the clusters and their
    bound let expect; `sizes` are the rows of each outcome that is drawn among. None where no bound
    is declared.
    """
    if draw.by != "clusters" or draw.bound is None:
        return None
    kinds = [f"{name} rows" for name in sizes] or ["rows"]
    left = [f"{size / draw.bound:,.0f}" for size in sizes.values() or [rows]]
    said = " and ".join(f"{few} of the {kind}" for few, kind in zip(left, kinds, strict=True))
    return (
        f"cluster_bound={draw.bound:g}: about {said} will be left, drawn from {clusters:,} "
        f"clusters with {rows:,} rows."
    )


def draw_slots(asked: Mapping[str, Any], *, columns: bool) -> dict[str, Slot]:
    """The columns that a draw goes by: `columns` says that they are named, and not passed."""
    return {
        role: Slot("number" if role == "weights" else "name", asked[role] if columns else role)
        for role in DRAWN_BY
        if role in asked
    }


_UNITS: Final = {"clusters": "clusters", "weights": "rows"}


def drawn_from(part: Reader, *, units: str | None) -> Drawn:
    """What a document says was drawn, without names; `units` is where it says of how many."""
    by: By = part.choice("by", get_args(By))
    rows, seed = part.count("rows"), None if part.raw("seed") is None else seed_from(part)
    if part.raw("bound") is None:
        bound: float | None = None
    else:
        bound = part.positive("bound") if by == "clusters" else part.number("bound")
    inside = part.mapping("among") if part.has("among") else None
    among = () if inside is None else tuple((name, inside.count(name)) for name in inside.names())
    each: Each = part.choice("each", get_args(Each)) if by == "clusters" else "cluster"
    spanning = part.count("spanning") if part.has("spanning") else None
    many = rows if units is None else part.count(units)
    return Drawn(by, rows, many, seed, bound, among=among, each=each, spanning=spanning)


def unit_to_dict(drawn: Drawn) -> dict[str, Any]:
    """What documents say of what one row was drawn from, where there are clusters."""
    if drawn.by != "clusters":
        return {}
    spanning = {} if drawn.spanning is None else {"spanning": drawn.spanning}
    return {"each": drawn.each, **spanning}


def described_way(drawn: Drawn | None) -> str:
    """How rows were drawn, for a message."""
    if drawn is None:
        return "all rows as they are"
    details = [] if drawn.seed is None else [f"seed {drawn.seed}"]
    details += [] if drawn.bound is None else [f"bound {drawn.bound:g}"]
    details += [f"among the {name} rows" for name, _ in drawn.among]
    details += [f"one row for each {drawn.each}"] if drawn.apart else []
    return f"by {drawn.by}" + (f" ({', '.join(details)})" if details else "")


def _refuse_strange_options(by: By, asked: Mapping[str, Any]) -> None:
    fitting = {
        "clusters": ("clusters", "cluster_bound", "row_ids", "seed"),
        "weights": ("weights", "weight_bound", "row_ids", "seed"),
    }
    strange = next((name for name in asked if name not in fitting[by]), None)
    if strange is not None:
        raise InvalidTypeError(f"{strange} cannot be combined with {by}: leave it out.")
    if by == "weights" and "weight_bound" not in asked:
        raise InvalidTypeError(
            "weights needs weight_bound, the largest weight that there can be, seen or not. It "
            "follows from how the weights are defined; the largest weight seen voids the guarantee."
        )


def _bound(by: By, asked: Mapping[str, Any]) -> float | None:
    if by == "clusters" and "cluster_bound" in asked:
        most = whole_number(asked["cluster_bound"], "cluster_bound", least=1)
        if most >= _LARGEST_BOUND:
            raise InvalidValueError(
                f"cluster_bound={most} is more rows than a cluster can be bounded by: expected a "
                f"whole number below 2**{_LARGEST_BOUND.bit_length() - 1}."
            )
        return most
    if by != "weights":
        return None
    bound = real_number(asked["weight_bound"], "weight_bound", "a bound on weights")
    if not 0 < bound < np.inf:
        raise InvalidValueError(
            f"weight_bound={bound} is not a bound on weights: expected a positive number."
        )
    return bound


def _named(rows: Rows, slot: str) -> tuple[tuple[str, ...], Integers]:
    """The distinct names in a column, as text: 7, 7.0 and "7" are one; and the place of each
    row's.
    """
    names, places = rows.groups(slot)
    is_text = rows.columns[slot].dtype.kind == "U"
    missing = [p for p, name in enumerate(names) if is_missing_code(name)] if is_text else []
    if missing:
        where = np.flatnonzero(np.isin(places, missing))
        raise no_name(
            f"{rows.name(slot)}[{rows.start + where[0]}] is {names[missing[0]]!r}", where.size
        )
    return names, places


def _numbered(known: dict[str, int], names: tuple[str, ...], places: Integers) -> Integers:
    """The number of each row's name, in the order in which names were first met."""
    numbers = [known.setdefault(name, len(known)) for name in names]
    return np.array(numbers, dtype=np.int64)[places]


def no_name(said: str, rows: int) -> InvalidValueError:
    """The error for text in place of a name that usually stands for a missing one."""
    return InvalidValueError(
        f"{said}, usually a missing value ({rows} such rows): expected a name in every row. Find "
        "out which it is, or leave out whatever has no name, whatever its labels are."
    )


def _checked_weights(rows: Rows, bound: float) -> Floats:
    weights, name = rows.numbers("weights").astype(np.float64), rows.name("weights")
    bad = np.flatnonzero(~((weights >= 0) & (weights < np.inf)))
    if bad.size:
        raise not_a_weight(f"{name}[{rows.start + bad[0]}] is {weights[bad[0]]}", bad.size)
    above = np.flatnonzero(weights > bound)
    if above.size:
        said = f"{name}[{rows.start + above[0]}] is {weights[above[0]]:g}"
        raise weight_too_large(said, bound, above.size)
    return weights


def not_a_weight(said: str, values: int) -> InvalidValueError:
    """The error for so many values that are not weights, after what is said of one of them."""
    return InvalidValueError(
        f"{said} ({values} such values): expected weights from 0 to weight_bound in every row."
    )


def weight_too_large(said: str, bound: float, values: int) -> InvalidValueError:
    """The same for weights above their bound."""
    return InvalidValueError(
        f"{said}, above weight_bound={bound:g} ({values} such values): the bound must hold for "
        "every row that can be drawn. Find one that follows from how the weights are defined; the "
        "largest weight seen voids the guarantee."
    )


def _pairs(numbers: Numbers, sizes: Integers) -> zip[tuple[int, int]]:
    """Both as integers of Python, whose products do not overflow."""
    return zip(numbers.tolist(), sizes.tolist(), strict=True)
