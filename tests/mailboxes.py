"""The two mailboxes, in C and in Python, that the same tests hold."""

from __future__ import annotations

import pytest

from dsp_server.core.loop import Core
from dsp_server.core.native_core import NativeCore
from hbrt.attach.native_tasks import NativeTasks
from hbrt.attach.tasks import DirectTasks
from hbrt.mailbox.native import native

in_c = pytest.mark.skipif(native()[0] is None, reason="the mailbox in C is not built here")
TASKS = [pytest.param(NativeTasks, id="c", marks=in_c), pytest.param(DirectTasks, id="py")]
CORES = [pytest.param(NativeCore, id="c", marks=in_c), pytest.param(Core, id="py")]
