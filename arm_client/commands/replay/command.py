"""``hbrt replay``: rerun the calls of a recording, and compare their results."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import click

from arm_client.commands.replay.against import changes_of, table
from arm_client.commands.replay.board import Board, board_for
from arm_client.commands.which_board import private_image, say_private
from hbrt.cli.exits import Exit
from hbrt.cli.options import allow_option, image_option, timeout_option
from hbrt.cli.report import Report, reports
from hbrt.cli.tables import Column, Table, numbers
from hbrt.findings.text import counted
from hbrt.recording.compare import TYPES, Difference, difference
from hbrt.recording.format import Call, Recorded, read
from hbrt.status import name_of

CALL_SECONDS = 60.0
_DIFFERENCES = (
    *(Column(name) for name in ("CALL", "OP", "STATUS", "PART", "ADDRESS")),
    *numbers("BYTE", "ELEMENT", "DIFFER", "LARGEST ERROR"),
)


class RangeDifference(NamedTuple):
    """A range of a call that differs: its part in the call, its address, and how."""

    part: str
    phy_addr: int
    found: Difference


class Verdict(NamedTuple):
    """The outcome of one call."""

    recorded: Recorded
    status: int
    text: str
    differences: tuple[RangeDifference, ...]

    @property
    def is_comparable(self) -> bool:
        """Whether the recording has its outcome."""
        return self.recorded.call.status is not None

    @property
    def is_same(self) -> bool:
        """Whether status and memory are as recorded."""
        return self.recorded.call.status == self.status and not self.differences

    def sentence(self, dtype: str) -> str:
        """How it differs."""
        call, name = self.recorded.call, self.recorded.name
        who = f"{name} ({call.op or 'op unknown'}, command {call.cmd:#x})"
        if call.status != self.status:
            was = "0" if not call.status else name_of(call.status)
            return f"{who}: recorded status {was}, replayed {name_of(self.status)}. {self.text or call.text}".rstrip()
        part, phy_addr, found = self.differences[0]
        return (
            f"{who}: byte {found.byte} of the {part} at {phy_addr:#x}, element {found.element} as {dtype}: recorded "
            f"{found.recorded}, replayed {found.replayed}. {found.differing} of {counted(found.elements, 'element')} "
            f"differ, by {found.largest_error:g} at most."
        )

    def document(self) -> dict[str, Any]:
        """As plain data."""
        call = self.recorded.call
        return {
            "call": self.recorded.name,
            "cmd": call.cmd,
            "op": call.op,
            "recorded_status": call.status,
            "replayed_status": self.status,
            "text": self.text,
            "differences": [
                {"part": one.part, "phy_addr": one.phy_addr, **one.found._asdict()} for one in self.differences
            ],
        }


@click.command(epilog="Example: hbrt replay calls --image new_ops.py --as float32 --tolerance 1e-6")
@click.argument("directory", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("names", metavar="[CALL...]", nargs=-1)
@image_option(
    help="Image whose ops run: a Python file or a .so. Default: the running board's, HBRT_IMAGE, or the packaged ops."
)
@click.option(
    "--as",
    "dtype",
    type=click.Choice(TYPES),
    default="uint8",
    show_default=True,
    help="Type for comparing the bytes.",
)
@click.option(
    "--tolerance",
    metavar="ERROR",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="The largest absolute error of an element that does not count; needs --as.",
)
@click.option(
    "--against",
    "is_gate",
    is_flag=True,
    help="Compare cycles, DDR traffic and TCM of each op too, as a Markdown table; exit code 1 when one grew.",
)
@allow_option
@click.option("--diff", "has_diff", is_flag=True, help="List every range that differs, not only the first.")
@timeout_option(CALL_SECONDS)
@reports
def command(
    directory: Path,
    names: tuple[str, ...],
    image: Path | None,
    dtype: str,
    tolerance: float,
    timeout: float,
    allow: float,
    *,
    is_gate: bool,
    has_diff: bool,
) -> Report:
    """Run the calls of the recording DIR, or only the named ones, without their program.

    'hbrt run --record DIR PROGRAM' makes a recording, as does the recorder for boards. Each call gets the memory that
    it had, at the same physical addresses, on a private board with the image FILE. Its results and status are compared
    with the recording; the exit code is 1 if any differ. --timeout applies to each call.

    --against makes it a gate for a pull request: 'hbrt replay --against DIR --image new_ops.py'.

    With HBRT_INLINE=1 the ops run in this process, where breakpoint() works.
    """
    if tolerance and dtype == "uint8":
        raise click.UsageError("--tolerance needs --as, the type of the bytes, such as --as float32.")
    calls, notes = read(directory)
    known = {one.name: one for one in calls}
    if unknown := [name for name in names if name not in known]:
        raise click.UsageError(f"The recording {directory} has no call {unknown[0]!r}; there are {_some(list(known))}.")
    chosen = [known[name] for name in names] if names else calls
    dsp_image = private_image(image)
    if not is_gate:
        say_private(dsp_image)
    with TemporaryDirectory() as directory_now:
        now = Path(directory_now) / "now" if is_gate else None
        with board_for(calls, dsp_image, now) as board:
            verdicts = [_replayed(board, one, dtype, tolerance, timeout) for one in chosen]
        again = {board.ran[one.call.custom_id]: one.call for one in read(now)[0]} if now else {}
    changes = changes_of([(one.recorded.call, again.get(one.recorded.name, Call(0)), one.is_same) for one in verdicts])
    different = [one for one in verdicts if one.is_comparable and not one.is_same]
    unended = [one for one in verdicts if not one.is_comparable]
    same = len(verdicts) - len(different) - len(unended)
    data = {
        "recording": str(directory),
        "calls": len(verdicts),
        "same": same,
        "different": [one.document() for one in different],
        "not_ended": [one.document() for one in unended],
        "notes": notes,
        **({"ops": [one.document() for one in changes]} if is_gate else {}),
    }
    parts: list[object] = [*table(changes, allow / 100), *notes] if is_gate else []
    if not is_gate:
        if has_diff and different:
            parts.append(Table(_DIFFERENCES, [row for one in different for row in _rows(one)]))
        parts += notes
        for one in unended:
            status = f"{name_of(one.status)}. {one.text}".rstrip() if one.status else "0"
            parts.append(f"{one.recorded.name} did not finish when it was recorded. Replayed, it ends with {status}")
        parts.append(f"{counted(len(verdicts), 'call')} replayed: {same} the same, {len(different)} different.")
        parts += [f"The first that differs is {one.sentence(dtype)}" for one in different[:1]]
    has_grown = is_gate and any(one.grown(allow / 100) for one in changes)
    return Report(data, *parts, code=Exit.FAILED if different or has_grown else Exit.GOOD)


def _replayed(board: Board, recorded: Recorded, dtype: str, tolerance: float, timeout_s: float) -> Verdict:
    status, text = board.run(recorded, timeout_s * 1000)
    call = recorded.call
    differences = []
    for used in call.ranges if call.status is not None else ():
        found = difference(recorded.bytes_of(used, is_after=True), board.bytes_of(used), dtype, tolerance)
        if found is not None:
            parts = [name for name in ("input", "output") if used.phy_addr == getattr(call, name)[0]]
            part = f"{parts[-1]} block" if parts else "mapped range"
            differences.append(RangeDifference(part, used.phy_addr, found))
    return Verdict(recorded, status, text, tuple(sorted(differences, key=lambda one: one.part != "output block")))


def _rows(verdict: Verdict) -> list[tuple[object, ...]]:
    start = (verdict.recorded.name, verdict.recorded.call.op, name_of(verdict.status) if verdict.status else "0")
    return [
        (*start, one.part, f"{one.phy_addr:#x}", one.found.byte, one.found.element, one.found.differing,
         f"{one.found.largest_error:.3g}")
        for one in verdict.differences
    ] or [(*start, *[None] * 6)]  # fmt: skip


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "") if names else "none"
