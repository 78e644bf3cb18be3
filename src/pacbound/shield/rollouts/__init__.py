"""Rollouts of a policy: collected to certify a shield, run with the shield on to test it, and
replayed.

    Task                what rollouts are made of
    collect_rollouts    the policy alone, each rollout with what a shield would make of it at every
                        threshold, or with the first state from which braking comes too late
    run_shielded        the policy under its shield
    check_label         a label, checked by replay
"""
