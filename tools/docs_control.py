"""Tables of docs/mailbox.md on what a program asks the daemon: the verbs, their arguments, and what they answer."""

from __future__ import annotations

from collections.abc import Callable

from hbrt.protocol.control import VERBS, Int, Text, Verb
from tools.markdown import table

ANSWERS = {
    "accelerators": "nil. The cores for models, which run no process before, start, and tasks may be queued for them. "
    "`model` is the name of the model that the program loads, for lists of its tasks",
    "sram": "start and bytes of each range of the NPU's SRAM that programs had before. `do` is take, give or look",
    "alloc": "int: physical address of a block of zeros that starts at a page. `HB_SYS_OUT_OF_MEMORY` when there is no "
    "range of that size. `site` is the `file:line` that asks, which findings name; `use` is the model that a "
    "runtime keeps it for, which is not a leak",
    "free": "nil. `HB_SYS_NOT_ALLOCATED` when no block of this client starts at `phy`. `site` is the `file:line` that "
    "frees, which the finding of a later use of the address names",
    "register": "int: address of the block that holds the range. From then on tasks of this client may use the block, "
    "and it lives until this client unregisters it, once for each time. `HB_SYS_REGISTER_MEM_FAILED` when the range is "
    "not inside one live block",
    "import": "int: address of a block whose bytes are those of a file that this client has open as `fd`, from "
    "`offset` on: the same address for the same range, while anybody has it registered. It counts as a registration. "
    "`HB_SYS_INVALID_ARGUMENT` when it is not memory or too small; `HB_SYS_REGISTER_MEM_FAILED`: not mappable",
    "unregister": "nil. `phy` is any address in the block. `HB_SYS_INVALID_ARGUMENT` when it is not registered by the "
    "client",
    "found": "nil. The client reports its own mistake, which only its process can see: `kind` and `text` as in "
    "[findings.md](findings.md), `places` a JSON list of maps; the board keeps a finding",
    "leave": "list of maps, findings as `status` has them: of this client and of nobody. Its blocks are freed, which "
    "finds leaks and overruns; it is to close its lease next",
    "slots": "list of int: more task slots of this client, fewer than asked for when few are left. "
    "`HB_DSP_TASK_NUM_EXCEED_LIMIT` when none is",
    "waits": "nil. Where the client's threads wait, which the byte `asked` of the client's record asks for: for each a "
    "line `Waits for slot N` (-1 when unknown), then its stack, the innermost call first, as lines "
    '`File "FILE", line N in FUNCTION` after two blanks',
    "verify_lease": "map `{pid, name}` of the client `peer`, when `proof` is the HMAC-SHA-256 of `nonce` under its "
    "token, in hexadecimal digits; else `HB_DSP_PERMISSION`",
    "status": "map `{board, directory, state, pid, uptime_s, image, profile, image_error, healthy, claim_lock, "
    "recovery, aging_ms, cores, routed_tasks, tasks, oldest_waiting, waiting, longest_running, running, slots, memory, "
    "gateways, clients, findings}`: what `hbrt status --json` prints; sizes in bytes, ages in seconds",
    "ops": "list of maps `{cmd, name, range, source, latency_us, cores}`: the commands that cores serve",
    "profile": "map `{name, title, origin, chip, constants, measured}`: the board's [profile](profiles.md), and the "
    "packaged one that it stands on; of each constant a list of its key, value, lowest and highest value, source and "
    "reason; of each op that it was fitted to, a list of the least and the most bytes and the error",
    "tasks": "list of maps `{cmd, name, kind, state, result, core, priority, custom_id, pid, program, input_phy, "
    "input_bytes, output_phy, output_bytes, submitted_ns, claimed_ns, started_ns, ended_ns, ended_unix_ns, waited_ns, "
    "ran_ns, modeled_cycles, modeled_ns, modeled_rule_ns, modeled_vector, modeled_scalar, modeled_ddr, "
    "modeled_wait, modeled_dma, modeled_overlap, modeled_is_estimated, work}`: of the [history](#history) the "
    "newest, at most `last`, by their ends. `ended_unix_ns` counts from 1970, the other times are CLOCK_MONOTONIC, 0 "
    "for what was not reached; `work` is a map of what the op charged ([cycles.md](cycles.md))",
    "trace": "map `{was_on, directory}`: `do` is on, off, or flush, which brings the files in `directory` up to date; "
    "with `events` 0 each ring holds 131072. See [time.md](time.md#the-files-of-a-trace)",
    "why": "map `{programs, tasks, cores, claim_lock, relay_pid, relay_is_stopped}`: who waits for whom now, with the "
    "stacks of waiting programs and running ops; what `hbrt why --json` has under `records`",
    "mem": "looks for bytes that were written into free memory, which become findings, then map `{summary, blocks}`: "
    "of the heap, a map `{base, size_bytes, used_bytes, free_bytes, "
    "largest_free_bytes, blocks}`, and of its first `most` blocks by address a list of maps `{phy_addr, "
    "size_bytes, client, cached, imported, site, use, registered_by}`",
    "forget": "nil. The findings so far are dropped; their lines stay in the log",
    "stop": "nil; then the board ends",
    "restart": "nil, once the cores (all, or `core`) run the image: the one that they have, or the file `image`, which "
    "may take `load_ms` to load",
    "recovery": "bool: whether a core that crashed starts again, after `enabled` was taken over when it is given",
    "listen": "map `{pid, endpoint}` of a relay that listens at `endpoint` (`tcp://HOST:PORT`) with the directory "
    "`keys` and that the board starts again when it dies. `HB_DSP_NOT_RUNNING` when it cannot listen there",
    "record": "nil. From now on the cores write the calls of this client into the recording at `directory`, an "
    "absolute path on the machine of the board",
    "inject": "list of maps `{fault, came}`: the faults that are still to come, after those of the lines of `faults` "
    "were added, and all before them forgotten when `clear` is 1. `HB_SYS_INVALID_ARGUMENT` when a line is no fault",
    "start_core": "nil, once the core runs. `HB_DSP_INVALID_ARGUMENT` when it ran already",
    "stop_core": "nil, once the core is offline. `HB_DSP_INVALID_ARGUMENT` when it was",
}


def verbs() -> str:
    """Every verb."""
    if set(ANSWERS) != set(VERBS):
        raise ValueError(f"Described are {sorted(ANSWERS)}, but the verbs are {sorted(VERBS)}.")
    rows = [
        (f"`{name}`", "yes" if verb.leased else "no", _arguments(verb), ANSWERS[name]) for name, verb in VERBS.items()
    ]
    return table(("verb", "lease", "args", "data of the reply"), rows)


def _arguments(verb: Verb) -> str:
    return "; ".join(
        f"`{name}` {_bounds(kind)}{', optional' if name in verb.optional else ''}" for name, kind in verb.args.items()
    )


def _bounds(kind: Int | Text) -> str:
    if isinstance(kind, Text):
        return f"str of up to {kind.most} characters, none of them NUL"
    high = f"2^{kind.high.bit_length()} - 1" if kind.high > 1 << 31 else f"{kind.high}"
    return f"int {kind.low} to {high}"


PARTS: dict[str, Callable[[], str]] = {"control-verbs": verbs}
