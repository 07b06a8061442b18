"""Connect pytest-xdist to a Python process on a machine of the cluster, as if it ran here.

``python -m hbrt_farm.commands.bridge HOST:PORT ARGUMENT...`` is ``python ARGUMENT...`` there, with this process's
directory and settings.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from hbrt_farm.engine import carried, engine

_MOST = 1 << 16


class Peer:
    """The process, from an actor of Ray; two methods at a time.

    It ends when its input closes, and so does the actor.
    """

    def __init__(self, arguments: Sequence[str], directory: str, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=directory,
            env={**os.environ, **environment},
        )

    def write(self, data: bytes) -> None:
        """Send it input; no bytes mean the end."""
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        if data:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        else:
            self._process.stdin.close()

    def read(self) -> bytes:
        """Wait for its output; empty bytes at the end."""
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe
        return os.read(self._process.stdout.fileno(), _MOST)


def main() -> None:
    """Copy bytes both ways until the process closes its output."""
    output = os.dup(1)
    os.dup2(2, 1)  # keep Ray's output out of the process's
    environment = carried("PYTEST_", "PYTHONPATH")
    with engine(1, sys.argv[1]) as ray:
        peer = ray.remote(num_cpus=1, max_concurrency=2)(Peer).remote(sys.argv[2:], os.getcwd(), environment)  # noqa: PTH109 - text
        threading.Thread(target=_give, args=(ray, peer), daemon=True).start()
        code = 0
        try:
            while data := ray.get(peer.read.remote()):
                os.write(output, data)
        except ray.exceptions.RayError as error:
            print(f"The process on the cluster has ended: {error}", file=sys.stderr, flush=True)
            code = 1
        os._exit(code)  # otherwise the other thread would restart a Ray that has ended here


def _give(ray: Any, peer: Any) -> None:
    data = b"."
    while data:
        data = os.read(0, _MOST)
        try:
            ray.get(peer.write.remote(data))
        except ray.exceptions.RayError:  # the other thread reports it
            return


if __name__ == "__main__":
    main()
