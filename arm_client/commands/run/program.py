"""``hbrt run PROGRAM``: a program of the user's own, with findings as its exit code."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from arm_client.commands.run.board import board_to_trace
from arm_client.commands.run.record import recorded
from arm_client.commands.run.traced import traced_run
from arm_client.session.exit_report import has_failed
from hbrt import settings
from hbrt.board.forked import end_with
from hbrt.board.paths import BoardRef, board_ref
from hbrt.cli.exits import Exit
from hbrt.cli.report import Report, is_json
from hbrt.native.files import library_folders

_PASSED_ON = {signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2}


def is_program(name: str) -> bool:
    """Whether an argument names a program: a Python file, or a file that can be executed."""
    return Path(name).is_file() and (name.endswith(".py") or os.access(name, os.X_OK))


def no_program(name: str) -> click.UsageError:
    """The error for a name that ``is_program`` does not take."""
    exists = Path(name).exists()
    return click.UsageError(
        f"Cannot execute {name}: neither an executable nor a .py file." if exists else f"No such file: {name}"
    )


def command_of(program: str, arguments: Sequence[str] = ()) -> list[str]:
    """The command that runs a program: a Python file by this interpreter."""
    first = [sys.executable, program] if program.endswith(".py") else [str(Path(program).absolute())]
    return [*first, *arguments]


class RunCommand(click.Command):
    """``hbrt run``, where everything after a program, including options, is the program's own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, up to the program."""
        flags = {
            name for param in self.params if isinstance(param, click.Option) and param.is_flag for name in param.opts
        }
        for at, word in enumerate(args):
            before = args[at - 1] if at else ""
            is_value = before.startswith("-") and before not in {*flags, "--"} and "=" not in before
            if word.startswith("-") or is_value:
                continue
            if is_program(word) and "--" not in args[:at]:
                args = [*args[:at], "--", *args[at:]]
            break
        return super().parse_args(ctx, args)


def run_program(
    program: str,
    arguments: tuple[str, ...],
    board: BoardRef | None,
    mode: str | None,
    image: Path | None = None,
    *,
    trace: Path | None = None,
) -> Report:
    """Run the program, and end with its exit code, 1 if a finding was reported in one of its processes, or UNCHECKED.

    If a signal ends the program, this process ends by the same signal.

    Args:
        program: A Python file, or a file that can be executed.
        arguments: Its arguments.
        board: The board to use; None for the program's own choice.
        mode: HB_DSP_RPC_MODE; None leaves it to the program's environment.
        image: The DSP image of its private board; None for HBRT_IMAGE.
        trace: File for the timeline of the run; or None.

    Raises:
        BadSettingError: a setting is wrong. click.UsageError: the file cannot be executed.
    """
    settings.check()
    os.environ["HBRT_CHECK"] = failing(settings.words("HBRT_CHECK"))
    if board is not None:
        os.environ["HBRT_BOARD"] = str(board.path)
    if mode is not None:
        os.environ["HB_DSP_RPC_MODE"] = mode
    if image is not None:
        os.environ["HBRT_IMAGE"] = str(image.absolute())
    # Behind the user's own folders: for ctypes.CDLL("librknnrt.so").
    folders = [os.environ.get("LD_LIBRARY_PATH", ""), *map(str, library_folders())]
    os.environ["LD_LIBRARY_PATH"] = ":".join(filter(None, folders))
    with recorded() as run, traced_run(trace, board_to_trace(board or board_ref())):
        try:
            code = _served(command_of(program, arguments), output=sys.stderr.fileno() if is_json() else None)
        except OSError as error:
            raise click.UsageError(f"Cannot execute {program}: {error.strerror}.") from None
    failed = bool(code) or has_failed(run.findings)  # which prints it; a program that ends by itself has printed it
    data = {
        "program": program,
        "exit_code": code,
        "passed": not failed and run.is_complete,
        "findings": [found.as_dict() for found in run.findings],
    }
    report = Report(data, code=run.exit_code(code or (Exit.FAILED if failed else Exit.GOOD)))
    if code < 0:
        report.show(as_json=is_json())
        sys.stdout.flush()
        _end_by(-code)
    return report


def _served(command: list[str], output: int | None) -> int:
    """Run a command in place of this process: it gets the open descriptors and the signals.

    A signal of the terminal reaches both processes by itself. A signal sent to this process by another one is passed
    on.

    Args:
        command: The command.
        output: Descriptor of its standard output; None for this process's own.

    Returns:
        Its exit code, negative for a signal.

    Raises:
        OSError: it cannot be executed.
    """
    parent, mine = os.getpid(), signal.pthread_sigmask(signal.SIG_BLOCK, {*_PASSED_ON, signal.SIGCHLD})

    def begin() -> None:
        end_with(parent)
        signal.pthread_sigmask(signal.SIG_SETMASK, mine)

    try:
        with subprocess.Popen(command, close_fds=False, preexec_fn=begin, stdout=output) as process:  # noqa: PLW1509 - no thread here
            while process.poll() is None:
                came = signal.sigwaitinfo({*_PASSED_ON, signal.SIGCHLD})
                if came.si_signo in _PASSED_ON and came.si_code <= 0:  # not by the kernel
                    process.send_signal(came.si_signo)
        return process.returncode
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mine)


def _end_by(number: int) -> None:
    """End by the signal that has ended the program, without a second core dump."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def failing(words: frozenset[str]) -> str:
    """HBRT_CHECK for the programs of a verb: the user's checks, and a failure for each finding."""
    return ",".join(sorted(words - {"tell"} | {"fail"}))
