"""Cascades on held-out rows: exit rate, cost and error increase of certified thresholds and of
those without a guarantee.

    python -m experiments.cascade --logits LOGITS.npz

takes the predictions on Fashion-MNIST that ship with the package, half of them to certify and half
to test, and the logits of the CIFAR-10 networks `resnet20`, `resnet44` and `resnet56` on the same
images, with their labels `y`. Without `--logits` it does the first part only, which has no
temperature scaling, and writes to files of another name.

xi is what is certified. Exit rates, costs and error increases are those of test rows, and
descriptive.
"""
