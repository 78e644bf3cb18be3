"""Networks that answer early: one backbone, a classifier after each stage, and inference that skips
what is not needed.

    EarlyExitNetwork     stages and heads around any torch modules; `infer` stops once sure
    train_heads          the slow network, then one head after the other on the frozen backbone
    count_macs           what an answer costs at every exit, in multiply-accumulate operations
    resnet_cifar         ResNet-20, 32, 44 and 56 for images of 32 x 32
    resnet101            ResNet-101, with torchvision's parameter names
    early_exit_resnet    exits after chosen blocks of any of them

Nothing here certifies: `EarlyExitNetwork.exit_table` gives the arrays that a cascade is certified
from, and `infer` takes the certificate. torch is needed by this package alone, so importing it
without torch says what to install.
"""

from pacbound.errors import MissingDependencyError

try:
    import torch as _torch  # noqa: F401, RUF100
except ImportError:
    raise MissingDependencyError.for_extra("torch", "torch", "An early-exit network") from None

from pacbound.cascade.early_exit.inference import EarlyExitResult
from pacbound.cascade.early_exit.macs import count_macs
from pacbound.cascade.early_exit.network import EarlyExitNetwork
from pacbound.cascade.early_exit.resnet101 import resnet101
from pacbound.cascade.early_exit.resnet_cifar import resnet_cifar
from pacbound.cascade.early_exit.split import early_exit_resnet
from pacbound.cascade.early_exit.table import ExitTable
from pacbound.cascade.early_exit.training import train_heads

__all__ = [
    "EarlyExitNetwork",
    "EarlyExitResult",
    "ExitTable",
    "count_macs",
    "early_exit_resnet",
    "resnet101",
    "resnet_cifar",
    "train_heads",
]
