"""Networks that answer early: one backbone, and a classifier after each of its stages.

| name | is |
|---|---|
| `EarlyExitNetwork` | stages and heads of any torch modules; `infer` skips what is not needed |
| `EarlyExitResult` | what `infer` answers |
| `ExitTable` | what every exit says on every row |
| `train_heads` | trains the slow network, then each head, as in the paper's appendix |
| `count_macs` | what an answer costs at every exit, in multiply-accumulate operations |
| `early_exit_resnet` | exits after chosen blocks of a ResNet |

Nothing here certifies: `EarlyExitNetwork.exit_table` gives the arrays that a cascade is certified
from, and `infer` takes the certificate. Only this package needs torch; importing it without torch
says what to install.
"""

from pacbound.errors import MissingDependencyError

try:
    import torch as _torch  # noqa: F401, RUF100
except ImportError:
    raise MissingDependencyError.for_extra("torch", "torch", "An early-exit network") from None

from pacbound.cascade.early_exit.inference import EarlyExitResult
from pacbound.cascade.early_exit.network import (
    EarlyExitNetwork,
    ExitTable,
    count_macs,
    early_exit_resnet,
)
from pacbound.cascade.early_exit.training import train_heads

__all__ = [
    "EarlyExitNetwork",
    "EarlyExitResult",
    "ExitTable",
    "count_macs",
    "early_exit_resnet",
    "train_heads",
]
