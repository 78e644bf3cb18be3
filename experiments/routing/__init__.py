"""What certified routing saves in dollars: commercial APIs and language models.

    python -m experiments.routing --data FOLDER [--draws 200]

`FOLDER` has the two files of outputs that `experiments.routing.pairs` names; their digests are
checked. It takes about ten minutes, and writes `routing.json`, `.md`, `.png` and `.svg` to
`experiments/results`.
"""
