"""``hbrt farm test``: pytest over many boards."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import click

from hbrt import settings
from hbrt.cli.options import address_option, boards_option, check_option, image_option, profile_option


@click.command(
    "test",
    short_help="Run a test suite over many boards.",
    epilog="Example: hbrt farm test --boards 4 tests -q --junit-xml=report.xml",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@boards_option
@address_option
@image_option(help="Image of the boards that have none from a marker.")
@check_option
@profile_option
@click.argument("arguments", metavar="[PYTEST_ARGUMENT...]", nargs=-1, type=click.UNPROCESSED)
def test(arguments: tuple[str, ...], boards: int, address: str | None, image: Path | None) -> None:
    """Run pytest with its tests distributed over processes with their own boards.

    pytest-xdist distributes them; output, options and exit code are pytest's. A test whose board or process died is
    rerun once; the summary says so. With --address the processes are a Ray cluster's.
    """
    settings.check()
    shared = ["-n", str(boards)]
    if address:
        bridge = shlex.join([sys.executable, "-m", "hbrt_farm.commands.bridge", address])
        shared = ["--dist", "load", "--max-worker-restart", str(4 * boards), "--tx", f"{boards}*popen//python={bridge}"]
    given = ["-o", f"dsp_image={image.absolute()}"] if image else []
    plugins = ["-p", "hbrt_farm.commands.retries"]
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *plugins, *shared, *given, *arguments])  # noqa: S606 - pytest in place of this process
