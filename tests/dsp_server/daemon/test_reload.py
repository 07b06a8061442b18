"""--reload: which files count, when they count as changed, and what becomes of a good and of a bad edit."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dsp_server.daemon.reload import CLOCK_SECONDS, FileWatch, stamp

if TYPE_CHECKING:
    from tests.dsp_server.conftest import Running

    Start = Callable[..., Running]
    WriteImage = Callable[..., Path]

POLL_S = 0.05
QUICK = {"dsp_server.daemon.reload.POLL_SECONDS": POLL_S}


def _age(path: Path, seconds: float) -> None:
    at = time.time() - seconds
    os.utime(path, (at, at))


def test_stamp_differs_when_a_file_changes_or_goes(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    assert stamp(str(path)) == (0, 0, 0)
    path.write_text("1")
    stamps = [stamp(str(path))]
    path.write_text("22")
    stamps.append(stamp(str(path)))
    (tmp_path / "b.py").write_text("22")
    (tmp_path / "b.py").replace(path)
    stamps.append(stamp(str(path)))
    _age(path, 100)
    stamps.append(stamp(str(path)))
    path.unlink()
    stamps.append(stamp(str(path)))
    assert len(set(stamps)) == len(stamps)


def test_file_that_is_older_than_its_reading_is_known(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("1")
    _age(path, 10)
    watch = FileWatch()
    watch.note([str(path)], read_at=time.time())
    assert watch.take_changed() == []
    path.write_text("22")
    assert watch.take_changed() == [str(path)]
    assert watch.take_changed() == []
    path.unlink()
    assert watch.take_changed() == [str(path)]
    path.write_text("1")
    assert watch.take_changed() == [str(path)]


def test_file_that_is_younger_than_its_reading_counts_as_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("1")
    watch = FileWatch()
    watch.note([str(path)], read_at=time.time() - 10)
    assert watch.take_changed() == [str(path)]
    watch.note([str(path)], read_at=time.time() - 10)  # and looks as it did when that was said
    assert watch.take_changed() == []


def test_files_that_are_not_noted_again_are_forgotten(tmp_path: Path) -> None:
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    for path in (one, two):
        path.write_text("1")
        _age(path, 10)
    watch = FileWatch()
    watch.note([str(one), str(two)], read_at=time.time())
    watch.note([str(two)], read_at=time.time())
    one.write_text("22")
    assert watch.take_changed() == []


def test_edit_is_loaded_and_a_broken_one_changes_nothing_until_it_is_mended(
    start: Start, write_image: WriteImage
) -> None:
    image = write_image(1)
    running = start(image, is_reloading=True, limits=QUICK)
    board = running.attach()
    assert running.which(board).value == 1
    write_image(2)
    running.until(lambda: running.which(board).value == 2, "the new image")
    image.write_text("def main(:\n")
    running.until(lambda: running.ask("status")["image_error"], "the error")
    assert "line 1, is not valid Python" in running.ask("status")["image_error"]
    write_image(3, before="raise LookupError('half an edit')")
    running.until(lambda: "half an edit" in running.ask("status")["image_error"], "the next error")
    assert running.which(board).value == 2
    assert [core["crashes"] for core in running.ask("status")["cores"]] == [0, 0]
    image.unlink()
    running.until(lambda: "No such file" in running.ask("status")["image_error"], "the loss of the file")
    write_image(4)
    running.until(lambda: running.which(board).value == 4, "the mended image")
    running.until(lambda: not running.ask("status")["image_error"], "the end of the change")
    assert f"Changed: {image}. Reloading." in running.log()
    assert "The board keeps the last good image." in running.log()


def test_module_beside_the_image_is_watched_also_when_it_is_what_is_broken(
    start: Start, write_image: WriteImage
) -> None:
    image = write_image(1, before="import helper")
    helper = image.with_name("helper.py")
    helper.write_text("value = 1\n")
    for file in (image, helper):
        os.utime(file, (0, 0))  # files just written might have changed after they were read, and are read again
    running = start(image, is_reloading=True, limits=QUICK)
    epoch = running.core(0)["epoch"]
    helper.write_text("value = 22\n")
    running.until(lambda: running.core(0)["epoch"] > epoch, "a reload for the helper")
    assert f"Changed: {helper}. Reloading." in running.log()
    # An import that is new, of a module that is broken: no core has ever loaded it.
    (image.with_name("newcomer.py")).write_text("x = (\n")
    write_image(2, before="import newcomer")
    running.until(lambda: "newcomer" in running.ask("status")["image_error"], "the newcomer's error")
    (image.with_name("newcomer.py")).write_text("x = 1\n")
    board = running.attach()
    running.until(lambda: running.which(board).value == 2, "the mended newcomer")


def test_edit_that_comes_while_another_loads_is_not_lost(start: Start, write_image: WriteImage) -> None:
    image = write_image(1)
    running = start(image, is_reloading=True, limits=QUICK)
    board = running.attach()
    write_image(2, before="open(__file__ + '.loading', 'w').close(); time.sleep(1000)")
    running.until(Path(f"{image}.loading").exists, "the load of a slow image")
    write_image(3)
    running.until(lambda: running.which(board).value == 3, "the newest image")
    running.until(lambda: not running.ask("status")["image_error"], "the end of the change")


def test_nothing_is_reloaded_without_an_edit(start: Start, write_image: WriteImage) -> None:
    image = write_image(1)
    time.sleep(2 * CLOCK_SECONDS)  # a file that is read at once after it was written is read again
    running = start(image, is_reloading=True, limits=QUICK)
    board = running.attach()
    looked_until = time.monotonic() + 4 * POLL_S
    while time.monotonic() < looked_until:
        running.which(board)
    assert running.core(0)["epoch"] == 1
