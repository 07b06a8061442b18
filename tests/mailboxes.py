"""The tasks, in C and in Python, that the same tests hold."""

from __future__ import annotations

import pytest

from hbrt.attach.native_tasks import NativeTasks
from hbrt.attach.tasks import DirectTasks

TASKS = [pytest.param(NativeTasks, id="c"), pytest.param(DirectTasks, id="py")]
