"""The ``hbrt`` command: which verbs there are, what calling one loads, what a failure looks like."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from arm_client.commands.model_exec.command import group as model_exec
from hbrt import __version__
from hbrt.cli.group import ENTRY_POINTS, VERBS, group
from tests.each import each
from tests.limits import PATIENCE_S

if TYPE_CHECKING:
    from tests.shared import Shell

REPOSITORY = Path(__file__).resolve().parents[3]

# Runs hbrt with argv[1:] and prints, on the last line, what it loaded.
LIST_LOADED_MODULES = """
import sys
try:
    from hbrt.cli.group import main
    main()
finally:
    import json
    print(json.dumps(sorted(sys.modules)))
"""

PLUGIN = """
import click

@click.command()
@click.argument("how")
def command(how):
    if how == "interrupted":
        raise KeyboardInterrupt
    if how == "defect":
        {}["no such key"]
    if how == "missing":
        open("/no/such/file")
    if how == "talkative":
        while True:
            click.echo("x" * 10000)
    if how == "late":
        raise TimeoutError("It took too long.")
    print("hello")
"""


def loaded_by(shell: Shell, *arguments: str) -> set[str]:
    answer = shell.python("-c", LIST_LOADED_MODULES, *arguments)
    assert answer.returncode == 0, answer.stderr
    loaded: list[str] = json.loads(answer.stdout.splitlines()[-1])
    return set(loaded)


def test_the_table_of_verbs_is_that_of_the_installed_package() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    targets = {name: verb.target for name, verb in VERBS.items() if not verb.extra}
    assert targets == project["entry-points"][ENTRY_POINTS]


def test_a_verb_of_a_guest_that_is_not_installed_says_which_extra_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VERBS, "idl", VERBS["idl"]._replace(extra="nowhere"))
    monkeypatch.setattr("hbrt.cli.group.ENTRY_POINTS", "hbrt.commands_of_nobody")
    answer = CliRunner().invoke(group, ["idl"], prog_name="hbrt")
    assert answer.exit_code == 3
    how = "install hbrt with its extra 'nowhere', as in pip install '.[nowhere]' packages/hbrt-nowhere in its clone"
    sentence = f"'hbrt idl' needs hbrt-nowhere, which is not installed: {how}."
    assert answer.output == f"Error: {sentence}\n"
    monkeypatch.setattr("importlib.metadata.distribution", lambda name: name)  # one without that verb
    answer = CliRunner().invoke(group, ["idl"], prog_name="hbrt")
    assert answer.output == f"Error: {sentence.replace('not installed', 'installed without it; install it again')}\n"


@each("name", VERBS)
def test_every_verb_has_help_and_refuses_an_option_that_it_does_not_have(name: str) -> None:
    runner = CliRunner()
    shown = runner.invoke(group, [name, "--help"], prog_name="hbrt")
    assert shown.exit_code == 0
    assert f"Usage: hbrt {name} " in shown.output
    refused = runner.invoke(group, [name, "--no-such-option"], prog_name="hbrt")
    assert refused.exit_code == 2
    assert "No such option" in refused.output


@pytest.mark.usefixtures("new_interpreters")
def test_help_lists_every_verb_and_loads_none(shell: Shell) -> None:
    shown = shell.good("--help")
    for name, verb in VERBS.items():
        assert f"  {name} " in shown
        assert verb.help[:30] in shown
    assert not {"arm_client", "dsp_server", "numpy", "zmq", "rich"} & loaded_by(shell, "--help")


@pytest.mark.usefixtures("new_interpreters")
def test_a_verb_loads_its_own_side_and_nothing_heavy(shell: Shell) -> None:
    loaded = loaded_by(shell, "version")
    assert "dsp_server.commands.version" in loaded
    assert not {"arm_client", "numpy", "zmq", "rich", "dsp_server.runtime", "dsp_server.daemon.supervisor"} & loaded


def test_a_verb_that_is_known_does_not_look_through_installed_packages(shell: Shell) -> None:
    assert "importlib.metadata" not in loaded_by(shell, "version")


def test_an_unknown_verb_is_wrong_usage(shell: Shell) -> None:
    answer = shell.hbrt("fly")
    assert answer.returncode == 2
    assert "Error: Unknown command 'fly'. 'hbrt --help' lists the verbs." in answer.stderr


@each("typed, meant", [("stauts", "status"), ("stat", "status"), ("doctr", "doctor")])
def test_an_unknown_verb_is_answered_with_the_nearest(typed: str, meant: str) -> None:
    answer = CliRunner().invoke(group, [typed], prog_name="hbrt")
    assert answer.exit_code == 2
    assert f"Error: Unknown command {typed!r}. Did you mean {meant!r}?" in answer.output


def _commands(command: click.Command, words: list[str]) -> Iterator[tuple[list[str], click.Command]]:
    yield words, command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            child = command.get_command(click.Context(command), name)
            assert child is not None
            yield from _commands(child, [*words, name])


@pytest.mark.parametrize(("tool", "root"), [("hbrt", group), ("hrt_model_exec", model_exec)])
def test_every_help_has_an_example_that_is_well_formed(tool: str, root: click.Group) -> None:
    for words, command in _commands(root, [tool]):
        shown = CliRunner().invoke(root, [*words[1:], "--help"], prog_name=tool).output
        _, mark, example = shown.partition("Example: ")
        assert mark, words
        typed = shlex.split(example.splitlines()[0].partition(" >> ")[0])
        assert typed[: len(words)] == words, words
        if not isinstance(command, click.Group):
            command.make_context(" ".join(words), typed[len(words) :], resilient_parsing=True)


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["status", "--board", "nobody", "--json"], 2, "No board nobody in "),
        (["stauts", "--json"], 2, "Unknown command 'stauts'. Did you mean 'status'?"),
        (["mem", "--json", "--blocks", "many"], 2, "Invalid value for '--blocks'"),
    ],
)
def test_an_error_of_a_verb_with_json_is_json(shell: Shell, arguments: list[str], code: int, sentence: str) -> None:
    answer = shell.hbrt(*arguments)
    document = json.loads(answer.stdout)
    assert (answer.returncode, answer.stderr, document["exit_code"]) == (code, "", code)
    assert document["error"].startswith(sentence)


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_is_what_a_shell_can_read(shell: Shell, name: str) -> None:
    script = shell.good("completion", name)
    assert "_HBRT_COMPLETE" in script
    if program := shutil.which(name):
        checked = subprocess.run([program, "-n"], input=script, capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")


def test_completion_knows_verbs_and_boards(shell: Shell) -> None:
    shell.good("start", "--cores", 1)
    shell.environment["_HBRT_COMPLETE"] = "bash_complete"
    for typed, known in (
        ("hbrt comp", "plain,completion"),
        ("hbrt far", "plain,farm"),  # listed whether or not it is installed
        ("hbrt rm def", "plain,default"),
        ("hbrt estimate 0x405", "plain,0x405\nfile,0x405"),
        ("hbrt mem --board def", "plain,default"),
        ("hbrt run n", "plain,nn\nfile,n"),
        ("hbrt run nn soft", "plain,softmax"),
        ("hbrt start --profile j", "plain,j5\nfile,j"),
        ("hbrt start --check dma,mem", "plain,dma,memory"),
        ("hbrt op check 0x405", "plain,0x405"),
    ):
        shell.environment |= {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
        assert shell.good() == f"{known}\n"


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash is here")
def test_bash_offers_files_next_to_names(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "nn program.py").touch()
    (tmp_path / "hbrt").write_text("#!/bin/sh\nprintf 'plain,nn\\nfile,n\\n'\n")
    (tmp_path / "hbrt").chmod(0o755)
    ask = 'COMP_WORDS=(hbrt run n); COMP_CWORD=2; _hbrt_completion ./hbrt 2>/dev/null; printf "%s\\n" "${COMPREPLY[@]}"'
    script = f"{shell.good('completion', 'bash')}\n{ask}\n"
    done = subprocess.run(["bash"], input=script, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines() == ["nn", "nn program.py"]


def test_the_version_comes_without_a_verb(shell: Shell) -> None:
    assert shell.good("--version") == f"hbrt {__version__}\n"


@pytest.mark.long
def test_a_verb_does_the_same_in_a_process_of_its_own(shell: Shell) -> None:
    started = shell.python("-m", "hbrt", "start", "--cores", 1)
    assert (started.returncode, started.stderr) == (0, ""), started
    for verb in sorted(shell.ASKING - {"stop"}):
        here, there = shell.hbrt(verb), shell.python("-m", "hbrt", verb)
        assert (there.returncode, there.stderr.split()) == (here.returncode, here.stderr.split()), verb
        assert len(there.stdout.splitlines()) == len(here.stdout.splitlines()), verb
    stopped = shell.python("-m", "hbrt", "stop")
    assert (stopped.returncode, stopped.stderr) == (0, ""), stopped


def test_the_program_and_the_module_are_one(shell: Shell) -> None:
    program = Path(sys.executable).parent / "hbrt"
    if not program.exists():
        pytest.skip(f"this Python has no {program}: hbrt runs from its source")
    assert shell.python(program, "--version").stdout == shell.good("--version")


@pytest.fixture
def with_plugin(shell: Shell, tmp_path: Path) -> Shell:
    """A shell whose Python has another package with a verb ``greet``."""
    folder = tmp_path / "site"
    metadata = folder / "greeter-1.0.dist-info"
    metadata.mkdir(parents=True)
    (folder / "greeter.py").write_text(PLUGIN)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: greeter\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\ngreet = greeter:command\nstart = greeter:command\n")
    before = shell.environment.get("PYTHONPATH")
    shell.environment["PYTHONPATH"] = f"{folder}:{before}" if before else str(folder)
    return shell


def test_another_package_may_add_a_verb(with_plugin: Shell) -> None:
    assert with_plugin.good("greet", "kindly") == "hello\n"
    assert "  greet " in with_plugin.good("--help")


def test_another_package_does_not_take_a_verb_over(with_plugin: Shell) -> None:
    assert "Start a board" in with_plugin.good("start", "--help")


@pytest.mark.parametrize(
    ("how", "code", "sentence"),
    [
        ("interrupted", 130, ""),
        ("missing", 3, "Error: No such file or directory: /no/such/file.\n"),
        ("late", 124, "Error: It took too long.\n"),
    ],
)
def test_what_a_verb_raises_becomes_a_sentence_and_an_exit_code(
    with_plugin: Shell, how: str, code: int, sentence: str
) -> None:
    answer = with_plugin.hbrt("greet", how)
    assert (answer.returncode, answer.stdout, answer.stderr) == (code, "", sentence)


def test_a_reader_who_leaves_is_not_taken_for_a_failure(with_plugin: Shell) -> None:
    program = with_plugin.start("-m", "hbrt", "greet", "talkative")
    assert program.stdout is not None
    assert program.stdout.read(5) == "xxxxx"
    program.stdout.close()
    assert program.wait(timeout=PATIENCE_S) == 141
    assert program.stderr is not None
    assert program.stderr.read() == ""


@pytest.mark.parametrize("arguments", ["--help", "run --help", "version"])
def test_a_reader_who_has_left_before_is_none_either(shell: Shell, arguments: str) -> None:
    read, write = os.pipe()
    os.close(read)
    answer = subprocess.run(
        [sys.executable, "-m", "hbrt", *arguments.split()],
        env=shell.environment,
        stdout=write,
        stderr=subprocess.PIPE,
        timeout=PATIENCE_S,
        check=False,
    )
    os.close(write)
    assert (answer.returncode, answer.stderr) == (141, b"")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_defect(shell: Shell, closed: str) -> None:
    """The verb prints a table, which asks stdout whether it is a terminal."""
    command = f"exec {sys.executable} -m hbrt run nn help {closed}"
    answer = subprocess.run(
        ["sh", "-c", command], env=shell.environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (answer.returncode, answer.stderr) == (0, "")
    assert ("softmax" in answer.stdout) == (">&-" not in closed.replace("2>&-", ""))


def test_a_defect_is_shown_whole(with_plugin: Shell) -> None:
    answer = with_plugin.hbrt("greet", "defect")
    assert answer.returncode == 3
    assert "KeyError: 'no such key'\nThis is a bug in hbrt, not in your program" in answer.stderr
