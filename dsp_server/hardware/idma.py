"""iDMA as an op sees it: the C names over this core's engine.

The engine is `descriptors.py`, the rules of a transfer `transfers.py`, the frames `frame.py`. The C
names act on `current()`, return a negative code where C would, and leave a sentence for `idma_last_error`.
Methods of `Idma`, and `ping_pong`, raise instead.

Source: Halide, the Xtensa runtime, for the calls and IDMA_OK,
https://github.com/halide/Halide/blob/xtensa-codegen/src/runtime/xtensa_dma.cpp;
DSP development guide (J5 OE), 10.2.3.3.6 PINGPONG DMA,
https://developer.d-robotics.cc/api/v1/fileData/j5_oe_v1_1_29/vdsp/dsp_dev.html
Emulator: the negative codes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsp_server.hardware.descriptors import current

if TYPE_CHECKING:
    from dsp_server.hardware.buffers import BufferLike


def idma_copy_desc(dst: BufferLike, src: BufferLike, size_bytes: int, flags: int = 0) -> int:
    """Queue a copy. `flags` are the chip's interrupt flags, without effect here.

    Returns:
        A handle of 1 or more; IDMA_ERR_BAD_TRANSFER, IDMA_ERR_QUEUE_FULL.
    """
    del flags
    idma = current()
    return idma.status_of(lambda: idma.copy(dst, src, size_bytes))


def idma_copy_2d_desc(
    dst: BufferLike,
    src: BufferLike,
    row_bytes: int,
    flags: int,
    num_rows: int,
    src_pitch_bytes: int,
    dst_pitch_bytes: int,
) -> int:
    """Queue a copy of rows. Pitches in bytes, `flags` as for `idma_copy_desc`.

    Returns:
        A handle of 1 or more; IDMA_ERR_BAD_TRANSFER, IDMA_ERR_QUEUE_FULL.
    """
    del flags
    idma = current()
    return idma.status_of(
        lambda: idma.copy_2d(
            dst,
            src,
            row_bytes,
            num_rows,
            src_pitch_bytes=src_pitch_bytes,
            dst_pitch_bytes=dst_pitch_bytes,
        )
    )


def idma_desc_done(handle: int) -> int:
    """Poll: 1 when the transfer is done and its bytes have moved, 0 when not yet.

    Raises:
        UnknownHandle: the code that a failed copy returned: the op's task fails with the reason. Another handle that no
            copy returned counts as done on a core, and is named (``dma-handle``); without a core it raises too. On the
            chip such a wait never ends, or ends by chance.
    """
    return int(current().desc_done(handle))


def idma_buffer_status() -> int:
    """Poll: how many descriptors are outstanding once those whose time has come are done; 0 is IDMA_OK."""
    return current().poll()


def idma_last_error() -> str:
    """The sentence of the last call that returned a negative code. The emulator's own; the chip has none."""
    return current().last_error
