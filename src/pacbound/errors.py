"""Every exception that pacbound raises on purpose.

    PacboundError
    ├── InvalidValueError (ValueError)         no guarantee follows from it: NaN, delta = 1.2
    │   ├── RepeatedSourceError                the same rows counted twice
    ├── InvalidTypeError (TypeError)           strings where scores belong
    ├── CertificateError (ValueError)          not a certificate, or one that was changed
    │   └── UnknownProcedureError              a certificate from a newer pacbound
    ├── UnwritableFileError (OSError)          no file can be written there
    ├── NotFittedError (ValueError, AttributeError)
    ├── UnwritableFileError (OSError)          nothing can be written there
    ├── ModelError (RuntimeError)              a model of a cascade failed to answer
    └── MissingDependencyError (ImportError)   an optional package is not installed

A message says what came, what is expected and what to do. Failing to certify is not here: it is a
result.
"""

from __future__ import annotations

from typing import Any


class PacboundError(Exception):
    """Any error that pacbound raises on purpose."""


class InvalidValueError(PacboundError, ValueError):
    """A value that no guarantee can be computed from."""


class RepeatedSourceError(InvalidValueError):
    """The same rows would be counted twice, which voids every guarantee."""


class InvalidTypeError(PacboundError, TypeError):
    """A value of a type that makes no sense where it was given."""

    @classmethod
    def of(cls, name: str, value: object, expected: str) -> InvalidTypeError:
        """The error for an argument; `expected` says what to pass in its place."""
        return cls(f"{name} is of type {type(value).__name__}: expected {expected}.")


class CertificateError(PacboundError, ValueError):
    """A document that is not a certificate, or that was changed after it was written."""


class UnknownProcedureError(CertificateError):
    """A certificate made by a procedure that this version does not know."""


class UnwritableFileError(PacboundError, OSError):
    """A result has nowhere to go: its path is a folder, is protected, or the disk is full."""


class NotFittedError(PacboundError, ValueError, AttributeError):
    """An estimator was asked before it was fitted."""


class ModelError(PacboundError, RuntimeError):
    """A model of a cascade failed, or what it gave is not an answer.

    `model` is its place in the cascade, `row` the row or item where one alone is to blame, and
    `partial` what an `AsyncCascade` had finished and not yet handed out. What the model raised is
    the `__cause__`.
    """

    def __init__(self, message: str, *, model: int | None = None, row: int | None = None) -> None:
        super().__init__(message)
        self.model = model
        self.row = row
        self.partial: tuple[Any, ...] = ()


class MissingDependencyError(PacboundError, ImportError):
    """An optional package is needed and not installed."""

    @classmethod
    def for_extra(cls, package: str, extra: str, purpose: str) -> MissingDependencyError:
        """The error for a missing `package`, with the command that installs it."""
        return cls(
            f"{purpose} needs {package}, which is not installed. Run: pip install "
            f"'pacbound[{extra}]'"
        )


def stand_in(name: str, module: str, error: MissingDependencyError) -> Any:
    """What a public name gives while its optional dependency is missing.

    `help`, `inspect.getmembers` and `from pacbound import *` look at every name, and must not fail
    for want of one that is never used. So a name with a capital gives a class and any other a
    function; both raise `error` when they are called, and the class also when it is subclassed or
    asked for one of its methods. `isinstance` says False, since there are no instances. The
    message is kept as `__missing_dependency__`.
    """
    doc = f"Not available: {error}"

    def refuse(*_: Any, **__: Any) -> Any:
        raise MissingDependencyError(str(error))

    def attribute(_: type, wanted: str) -> Any:
        # What tools look for by underscored names is absent, as on any class without it.
        if wanted.startswith("_"):
            raise AttributeError(wanted)
        refuse()

    details = {"__doc__": doc, "__module__": module, "__missing_dependency__": str(error)}
    if name[0].isupper():
        members = {"__new__": refuse, "__call__": refuse, "__getattr__": attribute}
        return type.__new__(type("StandIn", (type,), members), name, (), details)
    for attribute_name, value in {**details, "__name__": name, "__qualname__": name}.items():
        setattr(refuse, attribute_name, value)
    return refuse
