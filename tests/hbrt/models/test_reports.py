"""What onnxruntime does besides running models, by whichever way a process comes to it: nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.limits import PATIENCE_S

WAYS = [
    "from arm_client import dnn; dnn.load",
    "import rknn_api; rknn_api.rknn_init",
    "from rknn.api import RKNN; from rknnlite.api import RKNNLite",
    "import dsp_server.accelerator.sessions",
]
FORKS = """
import os, sys
assert "onnxruntime" in sys.modules
child = os.fork()
if child == 0:
    sys.exit(5)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(os.listdir("/proc/self/task")))
"""


@pytest.mark.parametrize("way", WAYS)
def test_it_reports_nothing_leaves_nothing_in_the_home_and_lets_a_fork_end(tmp_path: Path, way: str) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "OPENBLAS_NUM_THREADS": "1"}
    for name in ("ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME"):
        environment.pop(name, None)
    answer = subprocess.run(
        [sys.executable, "-c", f"{way}\n{FORKS}"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert (answer.stdout, answer.stderr) == ("5 1\n", "")  # a child that ends, and no thread but the program's own
    assert not list(tmp_path.iterdir())
