"""What a submission must fulfil: each rule has its status, and the sentence names the value."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from hbrt.ddr.file import Ddr, DdrTables
from hbrt.ddr.layout import PAGE_BYTES
from hbrt.mailbox.submission import block_refusal, refusal
from hbrt.mailbox.table import Request
from hbrt.status import Status
from tests.each import each

US, OTHER, CORES = 5, 6, 2


@pytest.fixture
def ddr() -> Iterator[Ddr]:
    ddr = Ddr.create(1 << 16, CORES)
    base = ddr.layout.phy_base
    DdrTables(ddr).add(1, base, PAGE_BYTES, PAGE_BYTES, US)
    DdrTables(ddr).add(2, base + 2 * PAGE_BYTES, PAGE_BYTES, PAGE_BYTES, OTHER)
    yield ddr
    ddr.close()


def submitted(ddr: Ddr, **changed: int) -> tuple[int, str] | None:
    base = ddr.layout.phy_base
    offsets = {key: base + value for key, value in changed.items() if key.endswith("_phy")}
    request = Request(1, 0, 0x1000, 0, 0, US, US, base, 64, base + 64, 64)
    return refusal(CORES, request._replace(**{**changed, **offsets}), partial(block_refusal, ddr, US))


@each(
    "changed",
    [
        {},
        {"core_mask": 3},
        {"priority": 255},
        {"cmd": 0xFFFF},
        {"custom_id": -(1 << 63)},
        {"input_bytes": PAGE_BYTES},
        {"input_bytes": 0},
    ],
)
def test_what_a_board_takes_is_not_refused(ddr: Ddr, changed: dict[str, int]) -> None:
    assert submitted(ddr, **changed) is None


def test_no_block_at_all_is_not_refused(ddr: Ddr) -> None:
    assert refusal(CORES, Request(1, 0, 0, 0, 0, US, US, 0, 0, 0, 0), partial(block_refusal, ddr, US)) is None


@each(
    "changed, status, text",
    [
        ({"core_mask": 4}, Status.HB_DSP_INVALID_CORE, "dspCoreId is 4; this board has 2 cores"),
        ({"core_mask": -1}, Status.HB_DSP_INVALID_CORE, "dspCoreId is -1"),
        ({"priority": 256}, Status.HB_DSP_INVALID_PRIORITY, "The priority is 256"),
        ({"cmd": 0x10000}, Status.HB_DSP_INVALID_ARGUMENT, "rpcCmd is 0x10000"),
        ({"custom_id": 1 << 63}, Status.HB_DSP_INVALID_ARGUMENT, f"The custom_id is {1 << 63}"),
        ({"input_bytes": PAGE_BYTES + 1}, Status.HB_DSP_INVALID_ADDRESS, "The input block: The physical range"),
        ({"output_bytes": -1}, Status.HB_DSP_INVALID_ADDRESS, "has a negative size"),
        ({"output_phy": 2 * PAGE_BYTES}, Status.HB_DSP_INVALID_ADDRESS, "The output block: "),
        ({"output_phy": 2 * PAGE_BYTES}, Status.HB_DSP_INVALID_ADDRESS, f"client {OTHER}, not to client {US};"),
        ({"input_phy": 4}, Status.HB_DSP_UNALIGNED_ADDRESS, "must start at a multiple of 8 bytes"),
    ],
)
def test_what_no_board_takes_is_refused_with_its_value(
    ddr: Ddr, changed: dict[str, Any], status: Status, text: str
) -> None:
    found = submitted(ddr, **changed)
    assert found is not None
    assert found[0] == status
    assert text in found[1]


def test_block_of_another_client_serves_once_it_is_registered(ddr: Ddr) -> None:
    DdrTables(ddr).set_owner(2, OTHER, (US,))
    assert submitted(ddr, output_phy=2 * PAGE_BYTES) is None
