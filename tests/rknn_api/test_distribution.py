"""hbrt-rknn, installed: its names are there, and the vendor's go first where they are."""

import subprocess
import sys
import zipfile
from pathlib import Path

from tests.limits import PATIENCE_S

SOURCE = Path(__file__).resolve().parents[2] / "packages" / "hbrt-rknn"
FIND = """
import importlib.util, site, sys
site.addsitedir(sys.argv[1])
print([importlib.util.find_spec(name).origin for name in ("rknn.api", "rknnlite.api")])
"""


def test_the_vendors_names_go_first(tmp_path: Path) -> None:
    wheel = tmp_path / "wheel"
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(wheel)],
        cwd=SOURCE,
        check=True,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    (built,) = wheel.glob("*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(built) as archive:
        archive.extractall(site)

    def found() -> str:
        answer = subprocess.run(
            [sys.executable, "-S", "-c", FIND, str(site)],
            check=True,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        return answer.stdout.strip()

    own = [str(site / "hbrt_rknn" / name / "api" / "__init__.py") for name in ("rknn", "rknnlite")]
    assert found() == str(own)
    for folder in ("rknn", "rknn/api"):
        (site / folder).mkdir()
        (site / folder / "__init__.py").touch()
    assert found() == str([str(site / "rknn" / "api" / "__init__.py"), own[1]])
