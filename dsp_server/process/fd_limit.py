"""How many descriptors a server of ours may have: each client takes some of its."""

from __future__ import annotations

import resource

MAX_FDS = 65536


def raise_descriptor_limit() -> None:
    """Raise this process's limit, which those that it starts inherit, as far as it may go and is of use."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FDS if hard == resource.RLIM_INFINITY else min(hard, MAX_FDS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
