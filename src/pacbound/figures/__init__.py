"""Figures from plain numbers, one function for each shape of picture.

Claims call them. They know no certificate: numbers and words in, a `pacbound.figure.Figure` out.

| file | draws |
|---|---|
| `thresholds` | a share, a count, or two rates, by the threshold on a score |
| `bins` | certified intervals of bins of confidence |
| `coverage` | wrong answers against rows answered |
| `walk` | what a cascade loses as more rows exit early |
| `batch` | who answered a batch, and the disagreements in its sample |
| `evidence` | the evidence of a monitor over its labels |
| `dial` | what the same counts would give at another value of what was asked |
| `plans` | planned looks, and what a larger sample would give |
"""
