"""Ping and pong are in one TCM bank: while the core computes in one, it waits for iDMA, which fills the other."""

from calls import copy_by

from dsp_server import XV_MEM_BANK_COLOR_0, XV_MEM_BANK_COLOR_1, TileManager, idma_copy_desc, idma_desc_done

NAMED = "bank-conflict"


def wait(handle: int) -> None:
    while idma_desc_done(handle) != 1:
        pass


def double(src: memoryview, dst: memoryview, tm: TileManager, pong_color: int) -> int:
    """Double the bytes of two halves, the second of which arrives while the first is processed."""
    half = len(src) // 2
    with tm.tile(half, XV_MEM_BANK_COLOR_0) as ping, tm.tile(half, pong_color) as pong:
        first = idma_copy_desc(ping, src, half)
        wait(first)
        second = idma_copy_desc(pong, src[half:], half)
        ping[:] = bytes(2 * byte for byte in ping)
        wait(second)
        pong[:] = bytes(2 * byte for byte in pong)
        wait(idma_copy_desc(dst, ping, half))
        wait(idma_copy_desc(dst[half:], pong, half))
    return 0


def wrong_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    return double(src, dst, tm, XV_MEM_BANK_COLOR_0)


def corrected_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    return double(src, dst, tm, XV_MEM_BANK_COLOR_1)


OPS = {0x1184: wrong_op, 0x1185: corrected_op}


def wrong() -> None:
    copy_by(0x1184)


def corrected() -> None:
    copy_by(0x1185)
