"""``hbrt restart`` and ``--reload``: the new image serves, or the last good one stays in use."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.shared import Shell

IMAGE = """
from dsp_server import hb_dsp_env_init, hb_dsp_register_fn, hb_dsp_start

def {name}(input, output, tm):
    return 0

def main():
    hb_dsp_env_init()
    hb_dsp_register_fn(0x1000, {name})
    hb_dsp_start()
"""


def write(path: Path, text: str) -> Path:
    """Write as editors do: a new file in the old one's place."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.rename(path)
    return path


def op_at_0x1000(shell: Shell) -> str | None:
    return next((row["name"] for row in shell.ops() if row["cmd"] == 0x1000), None)


@pytest.fixture
def image(shell: Shell) -> Path:
    return write(shell.cwd / "image.py", IMAGE.format(name="first"))


def test_restart_takes_the_image_as_its_file_is_now(shell: Shell, image: Path) -> None:
    shell.good("start", "--image", image)
    assert op_at_0x1000(shell) == "first"
    write(image, IMAGE.format(name="second"))
    assert op_at_0x1000(shell) == "first"
    assert shell.good("restart") == f"All cores of board default now run {image}.\n"
    assert op_at_0x1000(shell) == "second"
    assert shell.good("log", "-n", 1).endswith(f" daemon All cores now run {image}.\n")


def test_restart_takes_another_image_and_keeps_the_clients(shell: Shell, image: Path) -> None:
    shell.good("start")
    before = shell.status()["cores"]
    answer = shell.json("restart", "--image", "image.py")
    assert (answer["state"], answer["image"]) == ("running", str(image))
    assert op_at_0x1000(shell) == "first"
    after = shell.status()["cores"]
    assert [core["epoch"] for core in after] == [core["epoch"] + 1 for core in before]
    assert not {core["pid"] for core in after} & {core["pid"] for core in before}


def test_one_core_can_be_restarted(shell: Shell) -> None:
    shell.good("start")
    before = shell.status()["cores"]
    image = shell.status()["image"]
    assert shell.good("restart", "--core", 1) == f"Core 1 of board default now runs {image}.\n"
    after = shell.status()["cores"]
    assert after[0]["pid"] == before[0]["pid"]
    assert after[1]["pid"] != before[1]["pid"]
    assert "CORES" not in shell.good("ops")
    missing = shell.hbrt("restart", "--core", 5)
    assert (missing.returncode, missing.stderr) == (
        2,
        "Error: Core 5 is out of range: this board has cores 0 to 1.\n",
    )
    beyond = shell.hbrt("restart", "--core", 99)  # of no board at all
    assert (beyond.returncode, beyond.stderr) == (2, "Error: The argument 'core' of restart is 99, outside -1..63.\n")


def test_one_core_with_an_image_of_its_own_is_told_apart(shell: Shell, image: Path) -> None:
    other = write(shell.cwd / "other.py", IMAGE.format(name="second"))
    shell.good("start", "--image", image)
    assert shell.good("restart", "--core", 1, "--image", other) == f"Core 1 of board default now runs {other}.\n"
    assert f"\nImages: {image} on core 0, {other} on core 1.\n" in shell.good("status")
    heading, *lines = shell.good("ops").splitlines()
    assert heading.split()[-1] == "CORES"
    assert [(line.split()[1], line.split()[-1]) for line in lines if line.split()[0] == "0x1000"] == [
        ("first", "0"),
        ("second", "1"),
    ]
    assert shell.json("restart", "--core", 1)["image"] == str(other)
    assert shell.good("restart") == f"All cores of board default now run {image} and {other}.\n"
    shell.good("restart", "--image", image)
    assert f"\nImage {image}.\n" in shell.good("status")
    assert {tuple(row["cores"]) for row in shell.ops()} == {(0, 1)}


def test_an_image_that_does_not_load_changes_nothing(shell: Shell, image: Path) -> None:
    shell.good("start", "--image", image)
    pids = [core["pid"] for core in shell.status()["cores"]]
    broken = write(shell.cwd / "broken.py", "raise RuntimeError('not today')\n")
    answer = shell.hbrt("restart", "--image", broken)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert f"The image {broken} did not load" in answer.stderr
    assert f'  File "{broken}", line 1, in <module>' in answer.stderr
    assert answer.stderr.rstrip().endswith("RuntimeError: not today")

    status = shell.status()
    assert [core["pid"] for core in status["cores"]] == pids
    assert status["image"] == str(image)
    assert sum(name.startswith("image-") for name in shell.files()) == 2  # that of the cores for models too
    assert "RuntimeError: not today" in status["image_error"]
    assert "does not load; the last good one stays in use." in shell.good("status")
    assert op_at_0x1000(shell) == "first"
    assert shell.good("restart")
    assert shell.status()["image_error"] == ""


def test_an_image_that_is_not_python_changes_nothing(shell: Shell, image: Path) -> None:
    shell.good("start", "--image", image)
    write(image, "def main(:\n")
    answer = shell.hbrt("restart")
    assert answer.returncode == 1
    where = "line 1, is not valid Python: invalid syntax, at column 10 of `def main(:`."
    assert answer.stderr.splitlines()[-1] == f"Error: The image {image}, {where}"
    assert op_at_0x1000(shell) == "first"


def test_an_image_that_loops_while_it_loads_is_given_up(shell: Shell, image: Path) -> None:
    shell.good("start", "--image", image)
    loop = write(shell.cwd / "loop.py", "while True: pass\n")
    answer = shell.hbrt("restart", "--image", loop, "--timeout", 0.3)
    assert answer.returncode == 124
    assert f"The image {loop} did not load" in answer.stderr
    assert "after 0.3 s, so hbrt gave up" in answer.stderr
    assert op_at_0x1000(shell) == "first"
    assert shell.good("restart")


def test_restart_while_offline_is_wrong_usage(shell: Shell) -> None:
    answer = shell.hbrt("restart")
    assert answer.returncode == 2
    assert "No board default" in answer.stderr


def test_reload_follows_the_image(shell: Shell, image: Path) -> None:
    shell.good("start", "--image", image, "--reload")
    write(image, IMAGE.format(name="second"))
    await_op(shell, "second")


def await_op(shell: Shell, name: str) -> None:
    """The swap itself is not logged: ask the board until it has happened, which the test's time limit bounds."""
    while op_at_0x1000(shell) != name:
        pass


def test_a_time_limit_may_be_for_ever(shell: Shell) -> None:
    shell.good("start", "--timeout", "inf")
    for limit in ("inf", "1e300"):
        shell.good("restart", "--timeout", limit)
        shell.good("status", "--wait-healthy", "--timeout", limit)
    shell.good("stop", "--timeout", "inf")
    shell.good("start", "--cores", 1, "--timeout", "1e300")
    shell.good("stop", "--timeout", "1e300")


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        ("nan", "'nan' is not a number of seconds."),
        ("0", "0.0 is not in the range x>0."),
        ("x", "'x' is not a valid float range."),
    ],
)
def test_a_time_limit_that_is_none_is_wrong_use(shell: Shell, limit: str, why: str) -> None:
    code, said = shell.refused("restart", "--timeout", limit)
    assert code == 2
    assert said.endswith(f"Error: Invalid value for '--timeout': {why}\n")


def test_a_disk_that_is_full_is_no_fault_of_the_image(shell: Shell, image: Path) -> None:
    shell.good("start", "--image", image)
    pid = shell.pid()
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))  # no file may grow
    answer = shell.hbrt("restart")
    assert (answer.returncode, answer.stdout) == (3, "")
    assert answer.stderr.startswith(f"Error: The image {image} cannot be copied to {shell.home}/default/image-3.py: ")
    assert op_at_0x1000(shell) == "first"
    resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
    shell.good("restart")
