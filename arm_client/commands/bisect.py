"""``hbrt bisect``: the first commit for which a command fails, by ``git bisect run`` in its own work tree."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from hbrt.cli.report import Report, reports
from hbrt.errors import BoardError, WrongUseError

_FIRST = re.compile(r"^([0-9a-f]{7,}) is the first (?:bad|new) commit", re.MULTILINE)
_SKIPPING = '"$@"; code=$?; case $code in 2|3) exit 125;; esac; exit $code'
"""What a commit is tried by: with 125 git skips it."""
_SKIPPED = {2, 3, 125}


@click.command(epilog="Example: hbrt bisect v1.0 -- hbrt replay --against $PWD/calls --image ops.py")
@click.argument("good", metavar="GOOD")
@click.argument("words", metavar="-- COMMAND [ARGUMENT]...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--bad", metavar="COMMIT", default="HEAD", show_default=True, help="A commit for which it fails.")
@reports
def command(good: str, words: tuple[str, ...], bad: str) -> Report:
    """Find the first commit between GOOD and --bad for which COMMAND fails, by 'git bisect run'.

    COMMAND runs in its own work tree, in the folder that you are in. Files that git does not have are not there:
    name recordings by their full paths. A commit for which it ends with 2 or 3, as hbrt does for wrong usage and a
    broken environment, is skipped.
    """
    inside = Path(_git(Path(), "rev-parse", "--show-prefix").strip())
    first, last = (_git(Path(), "rev-parse", "--verify", f"{one}^{{commit}}").strip() for one in (good, bad))
    with TemporaryDirectory() as directory:
        tree = Path(directory) / "tree"
        _git(Path(), "worktree", "add", "--detach", "--force", str(tree), last)
        try:
            for commit, name, must_fail in ((last, bad, True), (first, good, False)):
                _git(tree, "checkout", "--quiet", commit)
                code = subprocess.run(words, cwd=tree / inside, stdout=subprocess.DEVNULL, check=False).returncode
                if code in _SKIPPED or bool(code) != must_fail:
                    raise WrongUseError(
                        f"The command must {'fail' if must_fail else 'succeed'} for {name}: it exited with code {code}."
                    )
            _git(tree, "bisect", "start", last, first)
            where = ["sh", "-c", f"cd -- {shlex.quote(str(inside))} && {{ {_SKIPPING}; }}", "sh"]
            told = _git(tree, "bisect", "run", *where, *words, must=False)
            found = _FIRST.search(told)
            if found is None:
                raise BoardError(f"No first failing commit was found.\n{told.strip()}")
            told = _git(tree, "log", "-1", "--format=%h%n%an%n%as%n%s", found[1])
            changed = _git(tree, "show", "--format=", "--name-only", found[1]).split()
        finally:
            _git(tree, "bisect", "reset", must=False)
            _git(Path(), "worktree", "remove", "--force", str(tree), must=False)
    short, author, date, subject = told.rstrip("\n").split("\n", 3)
    return Report(
        {"commit": found[1], "author": author, "date": date, "subject": subject, "files": changed},
        f"{short} ({date}, {author}) is the first for which it fails: {subject}",
        f"It changed {', '.join(changed)}.",
    )


def _git(folder: Path, *words: str, must: bool = True) -> str:
    """Run git in a folder; returns its output.

    Raises:
        BoardError: git is not installed. WrongUseError: it fails, and ``must`` not.
    """
    try:
        ran = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)  # noqa: S607
    except OSError as error:
        raise BoardError(f"Cannot run git: {error.strerror}. Install it.") from None
    if must and ran.returncode:
        raise WrongUseError(f"git {words[0]} failed: {ran.stderr.strip()}")
    return ran.stdout + ran.stderr
