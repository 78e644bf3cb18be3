"""Classes: when two values name the same one, and what names none. The one rule, for every source.

| value | the class |
|---|---|
| `True`, `1`, `1.0`, of any width | the number 1 |
| `"cat"`, `"1"`, `" 1"` where columns have types (arrays, frames, Parquet) | that text |
| `1`, `1.0`, `1.`, `1e0`, `true` in files without types (CSV, text in JSON) | the number 1 |
| `cat`, `01`, `+1`, ` 1` in files without types | that text, character for character |
| `None`, NaN, NA, null, empty text, and whatever the user calls missing | none: it is missing |
| `NA`, `nan`, `None`, `null`, `?` and the like as text | refused: usually a missing value |
| fractions, infinities, floats from 2^53 on, dates, bytes, lists | refused: not a class |

Numbers never equal text. Labels that no model ever predicts are the commonest way to a false
certificate, because a row on which all models are wrong is neither lost nor gained: so they are
refused unless the user allows a share of them. So are rows that a cascade gains because its slow
model never predicts their label in any row: its classes may be named in another way (-1 for 0, or
counted from 1). And so are labels and predictions that have no class in common. The rule looks at
each value by itself, so rows mean the same in whatever parts they come.

Truth values may be written as classes, "ill" and "healthy": `positive_class` says which one counts.
A class that no row has is refused, because a misspelt one would make every row negative; where all
classes are listed, it may be absent.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, floor, isfinite
from typing import Any, Final, NoReturn
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError, PacboundError
from pacbound.sources.values import EXACT_FLOATS, MISSING, Values, grade_hint, is_missing
from pacbound.stats.arguments import real_number
from pacbound.tally.columns import Slot
from pacbound.tally.label_matches import LabelMatches
from pacbound.tally.row_options import POSITIVE

Class = int | str
Integers = NDArray[np.int64]

# A column with more distinct values holds no classes, wherever it is counted.
MOST_CLASSES: Final = 2**20

# Text that usually stands for a missing value, in lower case and without spaces around it.
MISSING_CODES: Final = frozenset(
    ["#n/a", "#na", "-nan", "<na>", "?", "n/a", "na", "nan", "nat", "none", "null"]
)

_LONGEST_NUMBER: Final = 400
_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER: Final = re.compile(
    r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|[+-]?inf(?:inity)?",
    re.IGNORECASE,
)
_TRUTH: Final = {"true": 1, "false": 0}
_LISTED: Final = 5
# Said of a row without a class where one of them counts.
EVERY_ROW_HAS_ONE: Final = (
    "every row needs its class. To drop rows because their class is missing voids the guarantee, "
    "unless that has nothing to do with the class."
)
# Said of a row without a prediction.
ALL_PREDICT: Final = (
    "every model must predict every row. If one gave no answer, write that as a class of its own, "
    "such as 'no answer' or -1"
)
_LOOKS_MISSING: Final = "usually a code for a missing value"
_NOT_LISTED: Final = "not one of the classes that were listed"
_HALF: Final = "text with half a character, which was decoded wrongly"


class NotAClassError(Exception):
    """A value that names no class. The message says what it is."""


def class_of(value: Any) -> Class | None:
    """The class that a value with a type names; None if it is missing."""
    if is_missing(value) or (isinstance(value, str) and not value):
        return None
    if isinstance(value, (bool, np.bool_, int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        number = float(value)
        if isfinite(number) and number == floor(number) and abs(number) < EXACT_FLOATS:
            return int(number)
        raise NotAClassError("not a whole number that floats hold exactly")
    if isinstance(value, str):
        # Not str(value): a member of an enumeration of text would say its own name instead.
        return str.__str__(value)
    raise NotAClassError(f"a {type(value).__name__}")


def class_of_text(text: str) -> Class | None:
    """The class that text in a file without types names; None if it is empty."""
    if text.lower() in _TRUTH:
        return _TRUTH[text.lower()]
    if len(text) <= _LONGEST_NUMBER:
        if _INTEGER.fullmatch(text):
            return int(text)
        if _NUMBER.fullmatch(text):
            return class_of(float(text))
    return text or None


def is_missing_code(text: str) -> bool:
    """Whether text usually stands for a missing value."""
    return text.strip().casefold() in MISSING_CODES or not text.strip()


@dataclass(frozen=True)
class ClassRule:
    """What the user says about the classes of a table.

    `classes` are all that there are, if the user lists them: any other value is refused, and a
    listed one may look like a missing value. `missing` are values that mean "none". `unseen_labels`
    is the share of the rows whose label may be a class that no model predicts anywhere, or that an
    exit predicts and the slow model nowhere. With `unrelated_labels`, labels may match the slow
    model no more often than by chance. With `as_written`, no text stands for a missing value:
    answers are copied then, and not counted.
    """

    classes: frozenset[Class] | None = None
    missing: frozenset[Class] = frozenset()
    unseen_labels: float = 0.0
    unrelated_labels: bool = False
    as_written: bool = False

    @classmethod
    def of(
        cls,
        classes: Any = None,
        missing: Any = None,
        unseen_labels: float = 0.0,
        *,
        unrelated_labels: bool = False,
    ) -> ClassRule:
        """The rule from the arguments of a public function."""
        if not isinstance(unrelated_labels, (bool, np.bool_)):
            raise InvalidTypeError(
                f"unrelated_labels={unrelated_labels!r} is not True or False: True counts labels "
                "that match the slow model no more often than by chance."
            )
        share = real_number(unseen_labels, "unseen_labels", "a share of the rows")
        if not 0 <= share <= 1:
            raise InvalidValueError(
                f"unseen_labels={unseen_labels} is not a share of the rows: expected 0 to 1."
            )
        listed = None if classes is None else both_readings(_several(classes), "classes")
        if listed is not None and not listed:
            raise InvalidValueError("classes is empty: list all classes, or leave it out.")
        codes = frozenset() if missing is None else both_readings(_several(missing), "missing")
        return cls(listed, codes, share, bool(unrelated_labels))

    def listed(self) -> dict[str, list[Class] | None]:
        """The classes and the codes for a missing one, as `of` takes them and a document holds
        them.
        """
        return {
            "classes": None if self.classes is None else _sorted(self.classes),
            "missing": _sorted(self.missing) or None,
        }

    def read(self, value: Any, *, typed: bool) -> Class | None:
        """The class that a value names, None if it is missing. Raises if it names no class."""
        listed = self.classes is not None and isinstance(value, str) and value in self.classes
        try:
            found = class_of(value) if typed else class_of_text(value)
        except NotAClassError:
            if listed:
                return str.__str__(value)
            raise
        if found is None:
            return str.__str__(value) if listed else None
        if isinstance(found, str) and not _is_whole(found):
            raise NotAClassError(_HALF)
        if found in self.missing:
            return None
        known = listed or self.as_written
        if not known and isinstance(found, str) and is_missing_code(found):
            raise NotAClassError(_LOOKS_MISSING)
        if self.classes is not None and found not in self.classes:
            raise NotAClassError(_NOT_LISTED)
        return found


class Vocabulary:
    """The classes that were met, numbered in the order in which they came."""

    def __init__(self, rule: ClassRule) -> None:
        self._rule = rule
        self._codes: dict[Class, int] = {}
        self._names: list[Class] = []

    def __len__(self) -> int:
        return len(self._codes)

    def __iter__(self) -> Iterator[Class]:
        return iter(self._codes)

    def codes(self, values: Values, name: str, start: int = 0) -> Integers:
        """The number of each row's class, -1 where it is missing.

        `name` and `start`, the row that the values begin with, are for the message if one names
        none.
        """
        if max(len(values.distinct), len(self) // 2) > MOST_CLASSES:
            refuse_many_classes(name)
        numbers = np.empty(len(values.distinct) + 1, dtype=np.int64)
        numbers[-1] = MISSING
        for place, value in enumerate(values.distinct):
            try:
                found = self._rule.read(value, typed=values.typed)
            except NotAClassError as error:
                rows = np.flatnonzero(values.places == place)
                if not rows.size:
                    continue
                where = f"{name}[{start + rows[0]}]"
                raise not_a_class(where, value, str(error), int(rows.size), self._rule) from None
            numbers[place] = MISSING if found is None else self.code(found)
        return numbers[values.places]

    def code(self, found: Class) -> int:
        """The number of a class."""
        code = self._codes.setdefault(found, len(self._names))
        if code == len(self._names):
            self._names.append(found)
        return code

    def names(self) -> Sequence[Class]:
        """All classes, each at its number."""
        return self._names

    def classes(self, codes: Iterable[int]) -> set[Class]:
        """The classes that have the numbers; -1, a missing one, has none."""
        return {self._names[code] for code in codes if code != MISSING}

    def counted(self, counts: Integers) -> Counter[Class]:
        """Counts by number as counts by class."""
        met = np.flatnonzero(counts)
        return Counter(
            {
                self._names[code]: n
                for code, n in zip(met.tolist(), counts[met].tolist(), strict=True)
            }
        )


@dataclass
class Met:
    """Over some rows with a label, by the class: the slow model's predictions, the labels, and
    where both are the same.
    """

    slow: Counter[Class] = field(default_factory=Counter)
    labels: Counter[Class] = field(default_factory=Counter)
    both: Counter[Class] = field(default_factory=Counter)

    def add(self, other: Met) -> None:
        """Take in what was seen of other rows."""
        self.slow += other.slow
        self.labels += other.labels
        self.both += other.both

    def triples(self) -> dict[Class, tuple[int, int, int]]:
        """The three counts of each class."""
        every = self.slow.keys() | self.labels.keys()
        return {found: (self.slow[found], self.labels[found], self.both[found]) for found in every}


@dataclass
class Evidence:
    """What was seen of the classes of a table, from which to tell labels that cannot be right.

    `unmatched` counts the labels that equal none of the predictions of their row, where that
    decides the outcome: nowhere where all models of a cascade agree. `gained` counts the labels
    that an exit predicts in their row and the slow model, `slow`, does not. `met` counts, over the
    rows with a label, what the slow model predicts, the labels, and where they are the same; first
    for rows on which all models agree, then for the others.
    """

    predicted: dict[str, set[Class]] = field(default_factory=dict)
    labelled: set[Class] = field(default_factory=set)
    unmatched: Counter[Class] = field(default_factory=Counter)
    gained: Counter[Class] = field(default_factory=Counter)
    slow: str | None = None
    met: tuple[Met, Met] = field(default_factory=lambda: (Met(), Met()))

    def saw(self, model: str, classes: Iterable[Class]) -> None:
        """Take in what a model predicted."""
        self.predicted.setdefault(model, set()).update(classes)

    def add(self, other: Evidence) -> None:
        """Take in what was seen of other rows."""
        for model, classes in other.predicted.items():
            self.saw(model, classes)
        self.labelled |= other.labelled
        self.unmatched += other.unmatched
        self.gained += other.gained
        self.slow = other.slow or self.slow
        for mine, theirs in zip(self.met, other.met, strict=True):
            mine.add(theirs)

    def matches(self, rule: ClassRule) -> LabelMatches | None:
        """How labels and the slow model's predictions meet; None if there are no labels."""
        agreeing, differing = (side.triples() for side in self.met)
        if not agreeing and not differing:
            return None
        return LabelMatches.of(agreeing, differing, insisted=rule.unrelated_labels)

    def check(self, rule: ClassRule, rows: int, labels: str | None) -> None:
        """Refuse labels that cannot be right: of another type or spelling, or never predicted.

        `labels` is what their column is called, None if there is none. Without a single label only
        the models can be held against each other.
        """
        predicted = set[Class]().union(*self.predicted.values())
        if labels is None or not self.labelled or not predicted:
            self._check_models_alone()
            return
        if not self.labelled & predicted:
            raise InvalidValueError(
                f"{labels} and {', '.join(self.predicted)} have no class in common, so every "
                f"prediction would count as wrong. Labels: {some(self.labelled)}. Predictions: "
                f"{some(predicted)}. {_likely_cause(self.labelled, predicted)}"
            )
        if rule.classes is None:
            self._check_each_model(labels)
            self._check_shares(rule, rows, labels, predicted)

    def _check_models_alone(self) -> None:
        """Refuse a model whose classes are of another type than the slow model's: it would differ
        in every row.
        """
        slow = self.predicted.get(self.slow or "", set())
        for model, classes in self.predicted.items():
            if classes and slow and not _types(classes) & _types(slow):
                raise InvalidValueError(
                    f"{model} holds {some(classes)} and {self.slow} {some(slow)}, which are "
                    "never equal: numbers on one side and names on the other. Name classes one way."
                )

    def _check_shares(self, rule: ClassRule, rows: int, labels: str, predicted: set[Class]) -> None:
        """Refuse more labels than allowed that a model cannot have predicted, by all that is seen.

        A slow model that never predicts them makes every exit that does a gain.
        """
        by_slow = self.predicted[self.slow] if self.slow is not None else predicted
        # Where a class stands in fewer than two rows on average, that it is never predicted says
        # nothing: many classes and few rows, or open answers.
        labelled = sum(met.labels.total() for met in self.met) or rows
        if 2 * min(len(self.labelled), len(by_slow)) > labelled:
            return
        unseen = _without(self.unmatched, predicted)
        lost = _without(self.gained, by_slow)
        total = unseen.total() + lost.total()
        # Divided, as whoever names the share does: 0.29 * 100 is below 29.
        if not total or total / rows <= rule.unseen_labels:
            return
        sides = f"Labels: {some(self.labelled)}. Predictions: {some(predicted)}."
        found = unseen or lost
        said = f"{labels} holds classes that no model predicts in any row: {_counted(unseen)}"
        why = "On such rows every model counts as wrong"
        if not unseen:
            said = f"{labels} holds classes that {self.slow} never predicts: {_counted(lost)}"
            why = f"On such rows another model is right and {self.slow} seems wrong"
            sides = f"Labels: {some(self.labelled)}. {self.slow}: {some(by_slow)}."
        raise InvalidValueError(
            f"{said}; {total} of {rows} rows in all. {why}. {sides} "
            f"{_likely_cause(set(found), predicted if unseen else by_slow)} If these are classes "
            "like others, list all with classes=, or allow a share of such rows with "
            f"unseen_labels={_rounded_up(total / rows)}."
        )

    def _check_each_model(self, labels: str) -> None:
        """Refuse a model whose classes are of another type than the labels, or another spelling.

        It would be wrong in every such row, and whatever answers in its place would seem to gain.
        """
        for model, classes in self.predicted.items():
            if classes and not _types(classes) & _types(self.labelled):
                raise InvalidValueError(
                    f"{model} holds {some(classes)} and {labels} {some(self.labelled)}, which "
                    "are never equal: numbers on one side and names on the other. Name classes "
                    "one way."
                )
            for cause, changed in _CHANGES.items():
                labelled = {changed(str(found)): found for found in self.labelled - classes}
                for found in sorted(map(str, classes - self.labelled)):
                    if changed(found) in labelled:
                        other = labelled[changed(found)]
                        raise InvalidValueError(
                            f"{model} holds {found!r}, which is never a label, and {labels} holds "
                            f"{other!r}, which that model never predicts: {cause}? Write them one "
                            "way. If these are two classes, list all with classes=."
                        )


def not_a_class(where: str, value: Any, why: str, rows: int, rule: ClassRule) -> PacboundError:
    """The error for a value that names no class."""
    shown = value.item() if isinstance(value, np.generic) else value
    said = f"{where} is {shown!r} ({rows} such values), {why}"
    if why == _LOOKS_MISSING:
        return InvalidValueError(
            f"{said}. If it means that there is none, pass missing={shown!r}; if it is a class, "
            "list all classes with classes=."
        )
    if why == _HALF:
        return InvalidValueError(f"{said}: decode it again, or rename it.")
    if why == _NOT_LISTED and rule.classes is not None:
        return InvalidValueError(f"{said}: expected one of {some(rule.classes)}.")
    error = InvalidValueError if isinstance(shown, (float, str)) else InvalidTypeError
    return error(
        f"{said}: expected classes, which are whole numbers below 2**53 or names."
        f"{grade_hint(shown)}"
    )


def refuse_many_classes(name: str) -> NoReturn:
    """Refuse a column with more distinct values than classes are counted: an id, or a text that is
    hardly ever the same twice.
    """
    raise InvalidValueError(
        f"{name} holds more than {MOST_CLASSES:,} distinct values: expected classes, so this may "
        "be the column of an id or of a score. Name the column of class indices or names. If "
        "answers are free text, compare them first: pass correct= of a column of truth values, or "
        "for a cascade quality= of columns that are 1 where an answer is right."
    )


def _several(values: Any) -> list[Any]:
    if isinstance(values, np.ndarray) and not values.ndim:
        return [values[()]]
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        return [values]
    return list(values)


def both_readings(values: Sequence[Any], name: str) -> frozenset[Class]:
    """The classes that are listed; text stands for itself and for the number that it reads as."""
    found: set[Class] = set()
    for value in values:
        try:
            read = "" if isinstance(value, str) and not value else class_of(value)
            if isinstance(value, str):
                if not _is_whole(value):
                    raise InvalidValueError(f"{name} holds {value!r}, {_HALF}: decode it again.")
                found.add(value)
                read = class_of_text(value)
        except NotAClassError as error:
            if not isinstance(value, str):
                raise InvalidValueError(
                    f"{name} holds {value!r}, {error}: expected classes."
                ) from None
            continue
        if read is not None:
            found.add(read)
    return frozenset(found)


def _is_whole(text: str) -> bool:
    """Whether there is no half of a character in a text."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def some(classes: Iterable[Class]) -> str:
    """A few of the classes, for a message."""
    ordered = _sorted(classes)
    listed = ", ".join(map(repr, ordered[:_LISTED]))
    return f"{listed}, … ({len(ordered)} in all)" if len(ordered) > _LISTED else listed


def _sorted(classes: Iterable[Class]) -> list[Class]:
    return sorted(classes, key=lambda found: (isinstance(found, str), found))


def _counted(classes: Counter[Class]) -> str:
    listed = ", ".join(f"{name!r} ({n} rows)" for name, n in classes.most_common(_LISTED))
    return f"{listed}, …" if len(classes) > _LISTED else listed


def _without(counts: Counter[Class], classes: set[Class]) -> Counter[Class]:
    return Counter({found: n for found, n in counts.items() if found not in classes})


def _types(classes: Iterable[Class]) -> set[type]:
    return set(map(type, classes))


def _likely_cause(labels: set[Class], predicted: set[Class]) -> str:
    """Why labels may differ from what is predicted, by the first change that makes them equal."""
    if not _types(labels) & _types(predicted):
        digits = {str(found).strip() for found in labels} & {
            str(found).strip() for found in predicted
        }
        if digits:
            return (
                "Likely cause: numbers on one side and text of digits on the other: use one type."
            )
        return "Likely cause: numbers on one side and names on the other: name classes one way."
    for cause, changed in _CHANGES.items():
        if {changed(str(found)) for found in labels} & {changed(str(found)) for found in predicted}:
            return f"Likely cause: {cause}."
    return "Likely cause: another list of classes, or another spelling."


_CHANGES: Final[Mapping[str, Callable[[str], str]]] = {
    "spaces around names": str.strip,
    "upper and lower case": str.casefold,
    "Unicode forms of the same letters (NFC against NFD)": lambda text: normalize("NFC", text),
    "leading zeros or a plus sign": lambda text: text.lstrip("+").lstrip("0") or "0",
    "brackets or quotes around names": lambda text: text.strip("[](){}'\" "),
    "spelling (case, spaces, accents or leading zeros)": (
        lambda text: normalize("NFKC", text.strip("[](){}'\" +").casefold()).lstrip("0")
    ),
}


def _rounded_up(share: float) -> float:
    """The share in two digits, rounded up."""
    digits = 2 if share >= 0.01 else 4
    steps: int = 10**digits
    return min(1.0, ceil(share * steps) / steps)


@dataclass(frozen=True)
class PositiveClass:
    """The class that counts, and those that were seen.

    Examples
    --------
    >>> from pacbound.sources.values import values_of
    >>> ill = PositiveClass.of("ill", ClassRule())
    >>> ill.flags(values_of(["ill", "healthy"], "y"), "y")
    array([ True, False])
    """

    given: Any
    meant: frozenset[Class]
    rule: ClassRule
    seen: set[Class] = field(default_factory=set, compare=False)

    @classmethod
    def of(cls, given: Any, rule: ClassRule) -> PositiveClass:
        """The class that a user names."""
        if not isinstance(given, (str, int, float, np.generic)) or given == "":
            raise InvalidTypeError(
                f"positive_class={given!r} is not a class: expected the one that counts, as the "
                "column spells it, for example 'ill'."
            )
        return cls(given, both_readings([given], POSITIVE), rule)

    def flags(self, values: Values, name: str, start: int = 0) -> NDArray[np.bool_]:
        """Whether each row is of this class; a missing class raises."""
        vocabulary = Vocabulary(self.rule)
        codes = vocabulary.codes(values, name, start)
        missing = np.flatnonzero(codes == MISSING)
        if missing.size:
            raise InvalidValueError(
                f"{name}[{start + missing[0]}] is missing ({missing.size} such rows): "
                f"{EVERY_ROW_HAS_ONE}"
            )
        meant = self.met(vocabulary.classes(np.unique(codes).tolist()))
        return np.isin(codes, [vocabulary.code(found) for found in meant])

    def met(self, classes: Iterable[Class]) -> set[Class]:
        """Take in classes that were met, and say which of them count."""
        found = set(classes)
        self.seen.update(found)
        return found & self.meant

    def require_seen(self, name: str) -> None:
        """Raise if no row is of this class, unless it is listed."""
        known = self.seen | (self.rule.classes or frozenset())
        if self.seen and not known & self.meant:
            raise InvalidValueError(
                f"positive_class={self.given!r} is in no row of {name}, which holds "
                f"{some(self.seen)}: name one of these. If it is only absent here, list all "
                "classes with classes=."
            )


def by_class(
    slots: Mapping[str, Slot], flags: Iterable[str], given: Any, rule: ClassRule
) -> dict[str, Slot]:
    """The columns of a question, the first of its `flags` being a column of classes, of which
    `given` is the one that counts.
    """
    named = [key for key in flags if key in slots]
    if not named:
        raise InvalidTypeError(
            f"positive_class={given!r} says which class counts in a column of truth values, and "
            "there is none here: leave it out."
        )
    slot = replace(slots[named[0]], positive=PositiveClass.of(given, rule))
    return {**slots, named[0]: slot}
