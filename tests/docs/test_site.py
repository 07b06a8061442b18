"""The docs site: it builds with no broken link, asks nothing of other machines, is searched, lists the API."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from importlib import import_module
from pathlib import Path

import pytest

from tests.each import each
from tests.limits import PATIENCE_S
from tests.nursery import run_program
from tests.shared import Once
from tools.docs_site import api_pages
from tools.docs_tables import REPOSITORY

# What a browser loads with a page; a link that a reader may click is none of it.
_LOADED = re.compile(r"""<(?:script|img|iframe)[^>]*\ssrc=["']?(https?:|//)|<link[^>]*\shref=["']?(https?:|//)""")
_LOADED_BY_STYLE = re.compile(r"""(?:url\(|@import\s)["']?(?:https?:|//)""")
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
    "cache flush": {"questions.html", "detectors.html"},
    "segfault": {"questions.html", "c-images.html"},
    "timeout": {"questions.html", "settings.html"},
    "multi process": {"questions.html", "scheduling.html"},
    "numpy": {"questions.html", "python.html"},
    "async": {"questions.html", "python.html"},
    "HVX": {"questions.html", "fastrpc.html"},
    "windows": {"questions.html", "install.html"},
    "list boards": {"questions.html"},
}


def build(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build without the API reference, which takes most of the time and has its own test."""
    return run_program(
        ["-m", "mkdocs", "build", "--strict", "--config-file", config, "--site-dir", site],
        PATIENCE_S,
        cwd=REPOSITORY,
        env={**os.environ, "HBRT_DOCS_API": "false", "NO_MKDOCS_2_WARNING": "1"},
    )


@pytest.fixture(scope="session")
def site(once: Once) -> Path:
    """The site, built."""

    def make(folder: Path) -> None:
        built = build(REPOSITORY / "mkdocs.yml", folder)
        assert built.returncode == 0, built.stderr

    return once("site", make)


@pytest.mark.long  # test_links_lead_somewhere is quick
def test_the_site_builds_and_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    assert {f"{page.stem}.html" for page in (REPOSITORY / "docs").glob("*.md")} | {"index.html", "changes.html"} <= set(
        pages
    )
    assert [name for name, text in pages.items() if _LOADED.search(text)] == []
    styles = [path for path in site.rglob("*.css") if _LOADED_BY_STYLE.search(path.read_text(encoding="utf-8"))]
    assert styles == []
    assert (site / "search" / "search_index.json").stat().st_size > 100_000
    assert "contact_sheet.webp" in pages["install.html"]
    assert "web.webp" in pages["index.html"]


@pytest.mark.long
@pytest.mark.skipif(NODE is None, reason="no node is here")
def test_questions_find_their_page_first(site: Path) -> None:
    (worker,) = (site / "assets" / "javascripts" / "workers").glob("search.*.js")
    index = site / "search" / "search_index.json"
    command = [str(NODE), str(REPOSITORY / "tools" / "docs_search.js"), str(worker), str(index)]
    done = subprocess.run([*command, *QUESTIONS], capture_output=True, check=True, text=True, timeout=PATIENCE_S)
    found = [json.loads(line)[:1] for line in done.stdout.splitlines()]
    missed = {
        asked: first for (asked, right), first in zip(QUESTIONS.items(), found, strict=True) if not right & {*first}
    }
    assert missed == {}
    for name in ("changes.html", "mailbox.html"):
        assert name not in done.stdout


@pytest.mark.long
def test_a_broken_link_fails_the_build(tmp_path: Path) -> None:
    text = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8")
    validation = re.search(r"^validation:\n(?: .*\n)+", text, re.MULTILINE)
    assert validation is not None
    config, docs = tmp_path / "mkdocs.yml", tmp_path / "docs"
    docs.mkdir()
    config.write_text(f"site_name: x\n{validation[0]}", encoding="utf-8")
    (docs / "other.md").write_text("# Other\n", encoding="utf-8")
    for link, said in (("other.md#there", "there"), ("gone.md", "gone.md")):
        (docs / "index.md").write_text(f"# Page\n\n[a link]({link})\n", encoding="utf-8")
        built = build(config, tmp_path / "site")
        assert built.returncode != 0
        assert said in built.stderr


def test_the_api_reference_lists_what_is_public() -> None:
    pages = api_pages()
    listed = {name: re.findall(r"^::: (\S+)$", text, re.MULTILINE) for name, text in pages.items()}
    for path, name in (
        ("api/arm.md", "hbDSPRpc"),
        ("api/arm.md", "hbDSPCvFlipParam"),
        ("api/python.md", "connect"),
        ("api/python.md", "gaussian_blur"),
        ("api/dnn.md", "hbDNNInfer"),
        ("api/dsp.md", "hb_dsp_register_fn"),
        ("api/fastrpc.md", "remote_handle64_invoke"),
        ("api/rknn.md", "rknn_init"),
        ("api/rknn.md", "RKNN"),
        ("api/rknn.md", "RKNNLite"),
    ):
        assert name in {target.rpartition(".")[2] for target in listed[path]}, name
    for target in (target for targets in listed.values() for target in targets):
        module, _, name = target.rpartition(".")
        assert getattr(import_module(module), name).__doc__, f"{target} has no docstring"


@each(
    "name",
    ["contact_sheet.webp", "farm_simulated.png", "web.webp", "web_dark.webp", "web_phone.webp", "trace_viewer.webp"],
)
def test_pictures_of_the_pages_are_small(name: str) -> None:
    assert 1000 < (REPOSITORY / "docs" / name).stat().st_size < 100_000
