"""Experiments on public data and on simulated rows, run from the repository root with
`python -m experiments.<name>`; not part of the package."""
