"""Every exception that pacbound raises on purpose.

    PacboundError
    ├── InvalidValueError (ValueError)      NaN, delta = 1.2, lengths that differ
    │   └── RepeatedSourceError             the same rows counted twice
    ├── InvalidTypeError (TypeError)        strings where scores belong, fractions for counts
    ├── CertificateError (ValueError)       not a certificate, or changed after it was written
    │   └── UnknownProcedureError           a certificate from a newer pacbound
    ├── UnwritableFileError (OSError)       a folder, a full disk, no write permission
    ├── NotFittedError (ValueError, AttributeError)
    ├── ModelError (RuntimeError)           a model of a cascade failed, or gave no valid answer
    └── MissingDependencyError (ImportError)    the message is the pip command

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


class CertificateError(PacboundError, ValueError):
    """A document that is no certificate, or that was changed after it was written."""


class UnknownProcedureError(CertificateError):
    """A certificate made by a procedure that this version does not know."""


class UnwritableFileError(PacboundError, OSError):
    """A result has nowhere to go: its path is a folder, is protected, or the disk is full."""


class NotFittedError(PacboundError, ValueError, AttributeError):
    """An estimator was asked before it was fitted."""


class ModelError(PacboundError, RuntimeError):
    """A model of a cascade failed, or gave what is no answer.

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
