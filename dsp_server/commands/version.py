"""``hbrt version``: what is installed, and what it emulates."""

from __future__ import annotations

import platform

import click

from hbrt import __version__
from hbrt.cli.report import Report, reports
from hbrt.ddr.layout import LAYOUT_VERSION
from hbrt.protocol.control import VERSION
from hbrt.types import HB_DSP_VERSION_MAJOR, HB_DSP_VERSION_MINOR, HB_DSP_VERSION_PATCH


@click.command(epilog="Example: hbrt version --json")
@reports
def command() -> Report:
    """Print the versions of the emulator, of the API that it emulates, and of its memory layout and protocol."""
    api = f"{HB_DSP_VERSION_MAJOR}.{HB_DSP_VERSION_MINOR}.{HB_DSP_VERSION_PATCH}"
    facts = {
        "hbrt": __version__,
        "dsp_runtime_api": api,
        "memory_layout": LAYOUT_VERSION,
        "control_protocol": VERSION,
        "python": platform.python_version(),
    }
    return Report(
        facts,
        f"hbrt {__version__}, an emulator of the DSP runtime API {api} (J5)",
        f"memory layout {LAYOUT_VERSION}, control protocol {VERSION}, Python {facts['python']}",
    )
