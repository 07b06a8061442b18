"""``--reload``: restart the cores when their image, or a module that it imports from its directory, has changed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import TypeAlias

from dsp_server.errors import ImageError
from dsp_server.lifecycle.lifecycle import Lifecycle
from dsp_server.process.event_loop import Loop
from dsp_server.process.journal import Journal
from hbrt.status import Status

POLL_SECONDS = 0.25
CLOCK_SECONDS = 0.02  # file times may lag behind the clock by a kernel tick
Stamp: TypeAlias = tuple[int, int, int]
_GONE: Stamp = (0, 0, 0)


def stamp(path: str) -> Stamp:
    """Return a file's time, size and inode, which change with the file; zeros if it is missing."""
    try:
        info = os.stat(path)  # noqa: PTH116 - called for every file four times a second
    except OSError:
        return _GONE
    return info.st_mtime_ns, info.st_size, info.st_ino


class FileWatch:
    """A set of files, each with its stamp from when it was last read."""

    def __init__(self) -> None:
        self._stamps: dict[str, Stamp] = {}

    def note(self, paths: Iterable[str], read_at: float) -> None:
        """Watch these files and no others.

        Args:
            paths: The files.
            read_at: Wall-clock time in seconds when reading began. A file written later counts as changed, since its
            text at that time is unknown, unless its stamp is the same as in the last call.
        """
        before, self._stamps = self._stamps, {}
        for path in paths:
            now = stamp(path)
            was_read = now[0] <= (read_at - CLOCK_SECONDS) * 1e9
            self._stamps[path] = now if was_read else before.get(path, _GONE)

    def take_changed(self) -> list[str]:
        """Return the files whose stamp has changed; from now on they count as read."""
        now = {path: stamp(path) for path in self._stamps}
        changed = sorted(path for path, seen in self._stamps.items() if now[path] != seen)
        self._stamps = now
        return changed


class Reloader:
    """Polls the files of the images that are running."""

    def __init__(self, loop: Loop, journal: Journal, lifecycle: Lifecycle) -> None:
        self._loop = loop
        self._journal = journal
        self._lifecycle = lifecycle
        self._watch = FileWatch()
        self._is_loading = False
        self._tried_at = 0.0

    def open(self) -> None:
        """Start polling."""
        self._lifecycle.on_change = self._note_files
        self._note_files()
        self._loop.later(POLL_SECONDS, self._poll)

    def _note_files(self) -> None:
        """Watch the files that the cores have loaded; after a failure, all files in the directory."""
        images = {core.life.image for core in self._lifecycle.dsp_cores}
        files = {str(image.origin) for image in images}
        files.update(path for core in self._lifecycle.dsp_cores if core.child for path in core.child.files)
        if self._lifecycle.image_error:
            files.update(str(path) for image in images for path in image.origin.parent.glob("*.py"))
        self._watch.note(files, max(self._tried_at, *(image.taken_at for image in images)))

    def _poll(self) -> None:
        self._loop.later(POLL_SECONDS, self._poll)
        if self._lifecycle.is_changing and (self._lifecycle.is_committed or not self._is_loading):
            return
        changed = self._watch.take_changed()
        if not changed:
            return
        self._journal.say(f"Changed: {', '.join(changed)}. Reloading.")
        self._lifecycle.supersede()  # an earlier rollout may still be loading
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
            self._journal.say(f"{text}\nThe board keeps the last good image.")
