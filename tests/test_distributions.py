"""The guests' wheels: they hold their packages, and the vendors' names go first where they are."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from arm_client.c_library.host import _GUESTS
from hbrt.borders.guests import WITH_C_NAMES, extra_of
from tests.limits import PATIENCE_S

PACKAGES = Path(__file__).resolve().parent.parent / "packages"
FIND = """
import importlib.util, site, sys
site.addsitedir(sys.argv[1])
print([importlib.util.find_spec(name).origin for name in sys.argv[2:]])
"""


def built(name: str, target: Path) -> Path:
    """The wheel of a guest."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(target)],
        cwd=PACKAGES / f"hbrt-{name}",
        check=True,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    (wheel,) = target.glob("*.whl")
    return wheel


@pytest.mark.parametrize(("name", "package"), [("farm", "hbrt_farm"), ("fastrpc", "fastrpc"), ("rknn", "rknn_api")])
def test_a_wheel_holds_every_file_of_its_package_and_stands_on_the_core(
    tmp_path: Path, name: str, package: str
) -> None:
    with zipfile.ZipFile(built(name, tmp_path)) as archive:
        held = {one for one in archive.namelist() if one.startswith(f"{package}/")}
        (metadata,) = (archive.read(one).decode() for one in archive.namelist() if one.endswith("/METADATA"))
    source = PACKAGES / f"hbrt-{name}" / "src"
    files = (file for file in (source / package).rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    assert held == {file.relative_to(source).as_posix() for file in files}
    assert "Requires-Dist: hbrt" in metadata


def test_the_core_knows_the_packages_with_c_names() -> None:
    projects = [tomllib.loads(one.read_text(encoding="utf-8")) for one in PACKAGES.glob("*/pyproject.toml")]
    modules = [one["project"].get("entry-points", {}).get("hbrt.c_names", {}) for one in projects]
    packages = {module.partition(".")[0] for one in modules for module in one.values()}
    assert packages == set(WITH_C_NAMES)
    native = {Path(one["tool"]["hbrt"]["native"]).parent.name for one in projects if "hbrt" in one["tool"]}
    assert native == packages


ANYONES = {"domain.h", "log.h", "os_defines.h", "verify.h"}  # other programs have headers of these names, too
REFUSED = {"rkllm.h"}  # it only says that hbrt does not offer RKLLM
C_NAME = re.compile(r"\b(?:CALL|FAST|HBRT_(?:FAST_)?FUNCTION)\([\w *]+, (\w+),")


@pytest.mark.parametrize("name", ["fastrpc", "rdk", "rknn"])
def test_the_core_knows_what_a_guest_brings(name: str) -> None:
    """By these names the core tells which guest is missing, so it has them, too."""
    folder = PACKAGES / f"hbrt-{name}"
    declared = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hbrt"]
    native = folder / declared["native"]
    headers = {one.name for one in native.glob("include/**/*.h*")} - ANYONES - REFUSED
    libraries = {one for own, more in declared["libraries"].items() for one in (own, *more.get("names", ()))}
    linked = {one.removesuffix(".so") for one in libraries if not one.endswith("_dsp.so")}  # images get the others
    assert headers
    assert linked
    assert {one for one in headers | linked if extra_of(one) != name} == set()
    names = {one for file in native.glob("arm/*.[ch]") for one in C_NAME.findall(file.read_text(encoding="utf-8"))}
    assert names
    assert {one for one in names if not one.startswith(_GUESTS[name])} == set()


@pytest.mark.parametrize("name", ["fastrpc", "rdk", "rknn"])
def test_libraries_in_c_find_those_of_the_core_beside_them(tmp_path: Path, name: str) -> None:
    """They are loaded by their paths alone, as a program's loader does by the path that 'hbrt cc' has written."""
    site = tmp_path / "site"
    with zipfile.ZipFile(built(name, tmp_path / "wheel")) as archive:
        archive.extractall(site)
    (site / "hbrt").symlink_to(PACKAGES.parent / "hbrt")
    libraries = [str(one) for one in site.glob("**/native/lib/*.so")]
    assert libraries
    load = "import ctypes, sys\nfor one in sys.argv[1:]:\n    ctypes.CDLL(one)"
    command = [sys.executable, "-S", "-c", load, *libraries]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "modules"),
    [
        ("rknn", ("rknn.api", "rknnlite.api")),
        ("rdk", ("hobot_dnn.pyeasy_dnn", "hobot_dnn_rdkx5.pyeasy_dnn")),
    ],
)
def test_the_vendors_names_go_first(tmp_path: Path, name: str, modules: tuple[str, str]) -> None:
    site = tmp_path / "site"
    with zipfile.ZipFile(built(name, tmp_path / "wheel")) as archive:
        archive.extractall(site)

    def found() -> str:
        answer = subprocess.run(
            [sys.executable, "-S", "-c", FIND, str(site), *modules],
            check=True,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        return answer.stdout.strip()

    ours = [site / f"hbrt_{name}" / module.replace(".", "/") for module in modules]
    ours = [one / "__init__.py" if one.is_dir() else one.with_suffix(".py") for one in ours]
    assert found() == str([str(one) for one in ours])
    theirs = site / modules[0].replace(".", "/")
    theirs.mkdir(parents=True)
    for folder in (theirs, theirs.parent):
        (folder / "__init__.py").touch()
    assert found() == str([str(theirs / "__init__.py"), str(ours[1])])
