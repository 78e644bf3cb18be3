"""The version of this package, in the one place where it is kept."""

VERSION = "0.1.0"
