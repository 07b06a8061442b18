"""What ``make test-arm64`` says where it cannot run; that it runs is for a machine with root's rights, and an hour."""

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.limits import PATIENCE_S

SCRIPT = Path(__file__).parents[1] / "tools" / "arm64" / "host.sh"


@pytest.mark.skipif(platform.machine() == "aarch64", reason="this machine is arm64")
def test_missing_packages_are_named_with_the_line_that_installs_them(tmp_path: Path) -> None:
    for name in ("bash", "dirname", "uname", "git", "unshare"):
        found = shutil.which(name)
        assert found is not None
        (tmp_path / name).symlink_to(found)
    answer = subprocess.run(
        [SCRIPT], env={"PATH": str(tmp_path)}, check=False, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (answer.returncode, answer.stdout) == (3, "")
    assert "These packages are missing: debootstrap qemu-user-static." in answer.stderr
    assert answer.stderr.endswith("apt install --no-install-recommends debootstrap qemu-user-static\n")
