"""Ping and pong each copy their results out, and the op's last wait covers only one of the two copies."""

from calls import copy_by

from dsp_server import XV_MEM_BANK_COLOR_0, XV_MEM_BANK_COLOR_1, TileManager, idma_copy_desc, idma_desc_done

NAMED = "dma-left"


def wait(handle: int) -> None:
    while idma_desc_done(handle) != 1:
        pass


def wrong_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    half = len(src) // 2
    with tm.tile(half, XV_MEM_BANK_COLOR_0) as ping, tm.tile(half, XV_MEM_BANK_COLOR_1) as pong:
        ping[:], pong[:] = src[:half], src[half:]
        left = [idma_copy_desc(dst, ping, half), idma_copy_desc(dst[half:], pong, half)]
        wait(left[1])
    return 0


def corrected_op(src: memoryview, dst: memoryview, tm: TileManager) -> int:
    half = len(src) // 2
    with tm.tile(half, XV_MEM_BANK_COLOR_0) as ping, tm.tile(half, XV_MEM_BANK_COLOR_1) as pong:
        ping[:], pong[:] = src[:half], src[half:]
        left = [idma_copy_desc(dst, ping, half), idma_copy_desc(dst[half:], pong, half)]
        wait(left[0])
        wait(left[1])
    return 0


OPS = {0x1128: wrong_op, 0x1129: corrected_op}


def wrong() -> None:
    copy_by(0x1128)


def corrected() -> None:
    copy_by(0x1129)
