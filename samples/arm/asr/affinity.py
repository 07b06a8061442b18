"""Bind the process to some CPUs, for real; the effect on the board is computed from a table of its cores."""

import os
from typing import Any

from recognizer import Clock, Figure, show_figures

REPORTS = True
GHZ = {0: 1.8, 1: 1.8, 2: 1.8, 3: 1.8, 4: 2.42, 5: 2.42, 6: 2.42, 7: 2.84}  # clusters of the board in the account
MID_AND_BIG = {4, 5, 6, 7}


def main() -> Any:
    """Returns the CPUs to which the process was bound."""
    before = os.sched_getaffinity(0)
    wanted = MID_AND_BIG & before or {max(before)}  # a machine with fewer CPUs numbers them differently
    try:
        os.sched_setaffinity(0, wanted)
        bound = os.sched_getaffinity(0)
    finally:
        os.sched_setaffinity(0, before)
    little, others = ([ghz for cpu, ghz in GHZ.items() if (cpu in MID_AND_BIG) is is_in] for is_in in (False, True))
    ratio = (sum(others) / len(others)) / (sum(little) / len(little))
    mask = sum(1 << cpu for cpu in MID_AND_BIG)
    figures = [
        Figure("mask of the middle and big cores", f"{mask:#x}", f"{sum(1 << cpu for cpu in bound):#x}", Clock.COUNTED),
        Figure("the kernel took it", "", "yes" if bound == wanted else "no", Clock.MEASURED),
        Figure("clock against that of the little cores", "", f"{ratio:.2f} times", Clock.MODELED),
        Figure("the whole is faster by", "2.12 times", "not modeled", Clock.MODELED),
    ]
    show_figures(
        figures,
        "Clocks explain a part: a middle core also does more in a cycle, by how much is not public.",
    )
    return sorted(bound)


if __name__ == "__main__":
    main()
