"""Tables of docs/c-programs.md, fastrpc.md and rknn-run-time.md: every function of a vendor's API, with its state."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tools import abi
from tools.markdown import table

_REFUSALS = {"hb": "HB_SYS_NOT_SUPPORTED", "rknn": "RKNN_ERR_FAIL` or `NULL", "fastrpc": "AEE_EUNSUPPORTED"}


def names(api: abi.Api) -> str:
    """The functions that the headers declare, by what a call does."""
    declared = abi.Declared(api)
    known = {name for of_module in abi.bodies(api).values() for name in of_module}
    states: dict[str, list[str]] = {"works": [], "accepted, without effect": [], "not offered": []}
    for one in declared.functions:
        if not one.name.startswith("hbrt_"):
            is_accepted = declared.about[one.name].startswith("Accepted")
            state = "not offered" if one.name not in known else "accepted, without effect" if is_accepted else "works"
            states[state].append(f"`{one.name}`")
    states[f"not offered: returns `{_REFUSALS[api.name]}`, and says so"] = states.pop("not offered")
    return table(("state", "functions"), [(state, ", ".join(found)) for state, found in states.items() if found])


PARTS: dict[str, Callable[[], str]] = {f"names-{api.name}": partial(names, api) for api in abi.APIS}
