"""A declared sequence in a certificate: counts that no one sample has at all steps are found."""

import numpy as np
import pytest

from pacbound.claims.cascade.fields import require_one_sample
from pacbound.errors import CertificateError
from pacbound.procedures.joint_walk import JointWalk

STEPS = np.array([[900, 1025], [1025, 800], [800, 900]]).T


def walk(exits: list[list[int]], lost: list[list[int]]) -> JointWalk:
    counts, losses = np.array(exits), np.array(lost)
    none = np.zeros_like(counts)
    return JointWalk(STEPS, counts, losses, losses, none, none)


def test_counts_of_one_sample_are_taken() -> None:
    require_one_sample(walk([[10, 0, 15], [0, 20, 5]], [[1, 0, 2], [0, 3, 1]]), "walks")


@pytest.mark.parametrize(
    ("exits", "lost"),
    [
        # A lower first threshold lets no fewer rows leave there, and loses no fewer of them.
        ([[10, 0, 9], [0, 20, 5]], [[1, 0, 2], [0, 3, 1]]),
        ([[10, 0, 15], [0, 20, 5]], [[4, 0, 2], [0, 3, 1]]),
        # Nor fewer of those that agree.
        ([[10, 0, 15], [0, 20, 5]], [[1, 0, 8], [0, 3, 1]]),
        # At the second exit a higher threshold, behind a first one that takes more, takes no more.
        ([[10, 0, 15], [0, 20, 25]], [[1, 0, 2], [0, 3, 1]]),
    ],
)
def test_counts_that_no_sample_has_at_all_steps_are_found(
    exits: list[list[int]], lost: list[list[int]]
) -> None:
    with pytest.raises(CertificateError, match="not those of one sample"):
        require_one_sample(walk(exits, lost), "walks")


def test_rows_that_leave_at_an_exit_that_is_not_used_are_found() -> None:
    with pytest.raises(CertificateError, match="never taken"):
        require_one_sample(walk([[10, 5, 15], [0, 20, 5]], [[1, 0, 2], [0, 3, 1]]), "walks")
