"""The site's own search, run by node, finds the right page first for the words that people type."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.test_site import build
from tests.limits import PATIENCE_S
from tools.docs_tables import REPOSITORY

NODE = shutil.which("node")
# Words, and the pages that may be found first: the question, or the guide that answers it.
QUESTIONS = {
    "breakpoint": {"questions.html", "debugging.html"},
    "docker": {"questions.html", "ci.html"},
    "memory leak test": {"questions.html", "testing.html"},
    "leak": {"questions.html", "findings.html"},
    "quantize onnx": {"questions.html", "rknn.html", "dnn-tensors.html"},
    "choose a core": {"questions.html", "scheduling.html"},
    "log file size": {"questions.html", "settings.html"},
    "wait forever": {"questions.html", "debugging.html"},
    "convert model": {"questions.html", "rknn.html", "dnn.html"},
    "slow op": {"questions.html", "debugging.html", "time.html"},
    "vscode": {"questions.html", "debugging.html"},
    "uninstall": {"questions.html", "install.html"},
    "hb_mapper": {"questions.html", "dnn-tensors.html", "dnn.html"},
    "colab": {"questions.html", "install.html"},
}


@pytest.mark.skipif(NODE is None, reason="no node is here")
def test_questions_find_their_page_first(tmp_path: Path) -> None:
    built = build(REPOSITORY / "mkdocs.yml", tmp_path)
    assert built.returncode == 0, built.stderr
    (worker,) = (tmp_path / "assets" / "javascripts" / "workers").glob("search.*.js")
    index = tmp_path / "search" / "search_index.json"
    command = [str(NODE), str(REPOSITORY / "tools" / "docs_search.js"), str(worker), str(index)]
    done = subprocess.run([*command, *QUESTIONS], capture_output=True, check=True, text=True, timeout=PATIENCE_S)
    found = [json.loads(line)[:1] for line in done.stdout.splitlines()]
    missed = {
        asked: first for (asked, right), first in zip(QUESTIONS.items(), found, strict=True) if not right & {*first}
    }
    assert len(missed) <= 1, missed
    for name in ("changes.html", "mailbox.html"):
        assert name not in done.stdout
