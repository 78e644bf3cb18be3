"""The paper's exhibits on its own data set: ImageNet, with ResNet-101 as the slow network.

| command | exhibit |
|---|---|
| `python -m experiments.imagenet.fast_inference` | cascades against baselines, and designed ones |
| `python -m experiments.imagenet.ablation` | the same over xi, delta and n |
| `python -m experiments.imagenet.cpu_time` | time per image of the cascades |
| `python -m experiments.imagenet.calibration` | reliability, all networks, classes and groups |
| `python -m experiments.imagenet.export` | the same outputs from a user's own images and weights |

All but the last two take `--outputs PATH`: either the compact .npz file with what 34 networks say
about the 50,000 validation images of ILSVRC-2012, or a clone of the public repository that the
outputs come from, cgnorthcutt/benchmarking-keras-pytorch. Both hold the same numbers, and are known
by the same digest (`outputs.py`). `--quick` takes a small generated zoo instead.
"""
