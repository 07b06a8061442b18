"""The ``hbrt`` command: gathers verbs, loads the one that is called, and turns errors into a message and an exit code.

Nothing here imports either side. The table below lists this distribution's verbs, because reading the installed
packages' entry points costs more than everything else that ``hbrt start`` does before a daemon runs; a test keeps the
table equal to pyproject.toml. The commands of guests, and of other packages that extend the group ``hbrt.commands``,
are looked up.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

import click

from hbrt import __version__
from hbrt.borders import guests
from hbrt.programs import interruptible

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

ENTRY_POINTS = "hbrt.commands"


class Verb(NamedTuple):
    """Where a verb's click command is, its line in ``hbrt --help``, and for a guest's the extra that installs it."""

    target: str
    help: str
    extra: str = ""


VERBS: dict[str, Verb] = {
    "start": Verb("dsp_server.commands.start:command", "Start a board, or an offline core of a running one."),
    "stop": Verb("dsp_server.commands.stop:command", "Stop a board, or one of its cores."),
    "restart": Verb("dsp_server.commands.restart:command", "Reload the image, or load another one, on running cores."),
    "recovery": Verb("dsp_server.commands.restart:recovery", "Show or set whether a crashed core restarts by itself."),
    "status": Verb("dsp_server.commands.status:command", "Show a board: its cores, memory, clients and findings."),
    "why": Verb("dsp_server.commands.why:command", "Show who waits for whom on a board, and what hangs."),
    "tasks": Verb("dsp_server.commands.tasks:command", "Show the finished tasks of a board, with their times."),
    "top": Verb("dsp_server.commands.top.command:command", "Watch a board: what runs, what waits, how fast it is."),
    "web": Verb(
        "dsp_server.commands.web.command:command",
        "Show a board in a browser: cores, timeline, memory, findings, log.",
    ),
    "trace": Verb("dsp_server.commands.trace:command", "Trace a board; show or save the timeline."),
    "ps": Verb("dsp_server.commands.ps:command", "List your boards (alias: hbrt ls)."),
    "rm": Verb("dsp_server.commands.ps:rm", "Remove the log and the directory of a stopped board."),
    "prune": Verb("dsp_server.commands.ps:prune", "Remove the logs and directories of all your stopped boards."),
    "ops": Verb("dsp_server.commands.ops:command", "List the commands that a board's image registered."),
    "mem": Verb("dsp_server.commands.mem:command", "Show a board's DDR and the allocated blocks."),
    "log": Verb("dsp_server.commands.log:command", "Print a board's log, or follow it."),
    "inject": Verb(
        "dsp_server.commands.inject:command",
        "Inject faults (a core dies or hangs, a copy or an allocation fails) to test error paths.",
    ),
    "relay": Verb(
        "dsp_server.commands.relay:command", "Carry the tasks of many ARM programs to a board (HB_DSP_RPC_MODE=relay)."
    ),
    "keys": Verb(
        "dsp_server.commands.keys:command",
        "Create keys for programs on other machines (hbrt relay --listen --keys DIR).",
    ),
    "run": Verb(
        "arm_client.commands.run.command:command",
        "Run samples and compare their results, or run a program under checks.",
    ),
    "explore": Verb(
        "arm_client.commands.explore.command:command",
        "Run a program in many orders until it fails, and show the shortest such order.",
    ),
    "replay": Verb(
        "arm_client.commands.replay.command:command",
        "Rerun the calls of a recording, and report the first difference.",
    ),
    "bisect": Verb("arm_client.commands.bisect:command", "Find the first commit for which a command fails."),
    "tour": Verb("arm_client.commands.tour:command", "Write the files of the five-minute tour."),
    "farm": Verb("", "Run a program, an op or a model over many items, on many boards.", "farm"),
    "op": Verb("arm_client.commands.op.command:command", "Write your own op, or check one against a reference."),
    "estimate": Verb(
        "arm_client.commands.estimate.command:command", "Estimate the time of a program or a command on the board."
    ),
    "cc": Verb("hbrt.cc.command:command", "Compile an ARM program, or an image, in C or C++."),
    "idl": Verb("", "Write the stub and skeleton of a FastRPC interface, in Python and C.", "fastrpc"),
    "port": Verb("hbrt.port.command:command", "Report what a program's source tree needs, and build it unchanged."),
    "model": Verb("arm_client.commands.model.command:command", "Replace a board's model with an ONNX file."),
    "version": Verb("dsp_server.commands.version:command", "Print the versions of the emulator and what it emulates."),
    "doctor": Verb(
        "dsp_server.commands.doctor.command:command", "Check the installation, the machine and your boards."
    ),
    "completion": Verb("hbrt.cli.completion:command", "Print the completion script of a shell."),
}
ALIASES = {"ls": "ps"}
_AS_JSON = "hbrt.as_json"


@contextlib.contextmanager
def mapped_exits(*, as_json: bool = False) -> Iterator[None]:
    """Turn an expected error, Ctrl-C or a closed pipe into a message, if any, and an exit code of hbrt.cli.exits.

    With ``as_json``, the error message is a JSON document on standard output.
    """
    from hbrt.cli.exits import Exit

    try:
        with interruptible():
            yield
    except click.ClickException as error:
        if not as_json:
            raise
        raise click.exceptions.Exit(_tell_json(error.format_message(), error.exit_code)) from None
    except (click.exceptions.Exit, click.Abort):
        raise
    except BrokenPipeError:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # buffered output still has to go somewhere
        raise click.exceptions.Exit(Exit.UNREAD) from None
    except KeyboardInterrupt:
        raise click.exceptions.Exit(Exit.INTERRUPTED) from None
    except Exception as error:  # noqa: BLE001 - an unexpected error is shown with its traceback
        raise click.exceptions.Exit(_tell(error, as_json=as_json)) from None


def _tell_json(sentence: str, code: int, status: object = None) -> int:
    """Print an error as the JSON document of a verb with ``--json``; returns the exit code."""
    from hbrt.cli.tables import show_json

    show_json({"error": sentence, "exit_code": code, "status": getattr(status, "name", None)})
    return code


def _tell(error: Exception, *, as_json: bool = False) -> int:
    """Print how a verb ended; returns the exit code."""
    from hbrt.cli.exits import Exit, exit_for, sentence_of

    code = exit_for(error)
    if code is None:
        import traceback

        traceback.print_exception(error)
        click.echo("This is a bug in hbrt, not in your program; see the lines above.", err=True)
        return Exit.BROKEN
    if as_json:
        return _tell_json(sentence_of(error), int(code), getattr(error, "status", None))
    from hbrt.cli.tables import show_text

    show_text(f"Error: {sentence_of(error)}", err=True)
    return code


class VerbGroup(click.Group):
    """A click group whose commands are loaded by name, when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature, as below
        """Verbs in the table's order, then those of other packages."""
        return [*VERBS, *sorted(set(guests.targets(ENTRY_POINTS)) - set(VERBS))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The verb's command, loaded; None if there is no such verb."""
        verb = VERBS.get(ALIASES.get(cmd_name, cmd_name))
        if verb and verb.extra:
            return cast("click.Command", guests.load(ENTRY_POINTS, cmd_name, f"'hbrt {cmd_name}'", verb.extra))
        target = verb.target if verb else guests.targets(ENTRY_POINTS).get(cmd_name)
        if target is None:
            return None
        module, _, attribute = target.partition(":")
        return cast("click.Command", getattr(import_module(module), attribute))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Like click, but loads no verb: the package of one may not be installed."""
        from click.shell_completion import CompletionItem

        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        items = [CompletionItem(name, help=VERBS[name].help if name in VERBS else None) for name in names]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb that is called; for an unknown one, the error suggests the most similar verb."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            import difflib

            known = [*self.list_commands(ctx), *ALIASES]
            longer = [verb for verb in known if verb.startswith(name)]
            nearest = longer or difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {nearest[0]!r}?" if nearest else "'hbrt --help' lists the verbs."
            ctx.fail(f"Unknown command {name!r}. {hint}")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the arguments, and record whether the verb must answer in JSON, including its errors."""
        ctx.meta[_AS_JSON] = "--json" in args
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of verbs without loading any."""
        rows = [(name, verb.help) for name, verb in VERBS.items()]
        others = sorted(guests.targets(ENTRY_POINTS).items())
        rows += [(name, f"({target})") for name, target in others if name not in VERBS]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb."""
        with mapped_exits(as_json=ctx.meta[_AS_JSON]):
            return super().invoke(ctx)


@click.group(
    cls=VerbGroup,
    epilog="Example: hbrt start --image my_image.py",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="hbrt %(version)s", help="Print the version.")
def group() -> None:
    """Run and manage an emulated ARM-DSP board.

    Exit codes: 0 success; 1 your op, image or check failed; 2 wrong usage; 3 the tool or its environment is broken; 4 a
    program left a process behind, whose mistakes are not known; 124 a time limit was reached; 130 Ctrl-C.
    """


def open_standard_streams() -> None:
    """Open streams closed by the caller (``hbrt status >&-``) on /dev/null: the next file would get a descriptor."""
    for fd, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free descriptor, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(fd, mode, closefd=False))


def be_program(command: click.Command, name: str) -> NoReturn:
    """Run a command with this process's arguments, and end the process like ``mapped_exits``."""
    from hbrt.cli.exits import Exit

    open_standard_streams()
    stdout = sys.stdout
    try:
        command.main(args=sys.argv[1:], prog_name=name)
    except SystemExit:
        if sys.stdout is not stdout:  # click replaces it if the reader of the help has left, and returns 1
            sys.exit(Exit.UNREAD)
        raise
    except Exception as error:  # noqa: BLE001 - from an option's default: the command itself has its mapped exits
        sys.exit(_tell(error))
    raise AssertionError("unreachable: click ends the process")


def main() -> None:
    """Entry point of the ``hbrt`` program, once it is loaded (see hbrt.programs)."""
    be_program(group, "hbrt")
