"""The figures of the page, one file for each kind of claim.

Each takes its numbers from where the displays of `pacbound.report` take theirs, and computes none.
"""
