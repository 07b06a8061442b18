"""``--reload``: restart the cores when their image, or a module beside it that it imports, has changed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import TypeAlias

from dsp_server.core.image_loader import ImageError
from dsp_server.lifecycle.lifecycle import Lifecycle
from dsp_server.process.event_loop import Loop
from dsp_server.process.journal import Journal
from hbrt.status import Status

LOOK_SECONDS = 0.25
CLOCK_SECONDS = 0.02  # a file's time may lag behind the clock by a tick of the kernel's
Stamp: TypeAlias = tuple[int, int, int]
_GONE: Stamp = (0, 0, 0)


def stamp(path: str) -> Stamp:
    """Something that differs when a file changed: time, size and inode; zeros when it is not there."""
    try:
        info = os.stat(path)  # noqa: PTH116 - called for every file four times a second
    except OSError:
        return _GONE
    return info.st_mtime_ns, info.st_size, info.st_ino


class FileWatch:
    """Files, and how each looked when it was last read."""

    def __init__(self) -> None:
        self._stamps: dict[str, Stamp] = {}

    def note(self, paths: Iterable[str], read_at: float) -> None:
        """Watch these files and no others.

        Args:
            paths: Files.
            read_at: Wall-clock seconds at which reading them began. What a file that was written later had in it then
                is not known, so that it counts as changed, unless it looks as it did when it was last asked for.
        """
        before, self._stamps = self._stamps, {}
        for path in paths:
            now = stamp(path)
            was_read = now[0] <= (read_at - CLOCK_SECONDS) * 1e9
            self._stamps[path] = now if was_read else before.get(path, _GONE)

    def take_changed(self) -> list[str]:
        """Files that do not look as they did; from now on they count as read."""
        now = {path: stamp(path) for path in self._stamps}
        changed = sorted(path for path, seen in self._stamps.items() if now[path] != seen)
        self._stamps = now
        return changed


class Reloader:
    """Looks at the files of the image that runs."""

    def __init__(self, loop: Loop, journal: Journal, lifecycle: Lifecycle) -> None:
        self._loop = loop
        self._journal = journal
        self._lifecycle = lifecycle
        self._watch = FileWatch()
        self._is_loading = False
        self._tried_at = 0.0

    def open(self) -> None:
        """Begin to look."""
        self._lifecycle.on_change = self._note_files
        self._note_files()
        self._loop.later(LOOK_SECONDS, self._look)

    def _note_files(self) -> None:
        """Watch what the cores have loaded, and after a failure all that lies beside it: one of it may be broken."""
        images = {core.image for core in self._lifecycle.life.cores}
        files = {str(image.origin) for image in images}
        files.update(path for core in self._lifecycle.cores if core.child for path in core.child.files)
        if self._lifecycle.image_error:
            files.update(str(path) for image in images for path in image.origin.parent.glob("*.py"))
        self._watch.note(files, max(self._tried_at, *(image.taken_at for image in images)))

    def _look(self) -> None:
        self._loop.later(LOOK_SECONDS, self._look)
        if self._lifecycle.is_changing and (self._lifecycle.is_committed or not self._is_loading):
            return
        changed = self._watch.take_changed()
        if not changed:
            return
        self._journal.say(f"Changed: {', '.join(changed)}. Reloading.")
        self._lifecycle.supersede()  # the load of a change before this one
        self._tried_at = time.time()
        self._is_loading = True
        try:
            self._lifecycle.restart(-1, None, self._done)
        except ImageError as error:
            self._lifecycle.refuse_image(str(error))
            self._done(error.status, str(error))

    def _done(self, status: Status, text: str) -> None:
        self._is_loading = False
        if status:
            self._journal.say(f"{text}\nThe last good image goes on.")
