"""A cascade chosen among 34 public networks on ImageNet, and what it saves against ResNet-101.

    python -m experiments.cascade_design --outputs OUTPUTS.npz

OUTPUTS holds what the networks say about the 50,000 validation images of ILSVRC-2012: `model` (34
names), `prediction` and `confidence` (34 x 50,000, the first class and its probability) and `label`
(50,000), gathered from the repository cgnorthcutt/benchmarking-keras-pytorch. Its SHA-256 must be
the one in `outputs.py`.

In each split 25,000 images design and 25,000 test. Of the former a fold of 5,000 chooses and 20,000
certify. Costs are multiply-accumulate operations. xi is what is certified; savings and losses on
test rows are descriptive, but for the bounds on the cost.
"""
