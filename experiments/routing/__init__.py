"""What certified routing saves in dollars: commercial APIs and language models.

    python -m experiments.routing --data FOLDER

`FOLDER` has the two files of outputs that `experiments.routing.pairs` names; their digests are
checked. It writes `routing.json`, `.md` and `.svg` to `experiments/results`; `--redraw`
makes tables and figure again from the JSON that is there. `--quick` takes two generated pairs and
few draws.
"""
