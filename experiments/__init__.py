"""Experiments on real data, run from the repository root with `python -m experiments.<name>`; not
part of the package."""
