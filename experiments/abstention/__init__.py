"""How much of the oracle's coverage is certified, and how often answers are wrong more than xi.

A table of predictions stands for the whole population, and is drawn from with replacement, so
that the true risk and coverage of every threshold are known. The oracle knows them, and takes the
threshold with the largest coverage whose risk is at most xi. Compared are pacbound, a single walk
from a fixed count, SGR (Geifman and El-Yaniv), the lowest threshold of the observed risk, and,
where MAPIE is installed, its controller of precision.

The shipped Fashion-MNIST predictions are always there. The other tables are public and not part of
this repository: `--cifar`, `--imagenet` and `--mmlu` take their paths. Their SHA-256 is written
down beside the results. The sources: logits of ResNet-56 (akamaster/pytorch_resnet_cifar10);
top-1 outputs of ResNet-152 (cgnorthcutt/benchmarking-keras-pytorch); outputs of Qwen3-32B
(liao-wb/conformal-labeling).

    python -m experiments.abstention [--cifar F] [--imagenet F] [--mmlu F] [--draws 300]
"""
