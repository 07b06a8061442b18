"""iDMA as an op sees it: the C names on top of this core's engine.

The engine is in `descriptors.py`, the rules for transfers in `transfers.py`, the frames in `frame.py`. The C names
act on `current()`, return a negative code where C would, and leave a message for `idma_last_error`. The methods of
`Idma`, and `ping_pong`, raise instead.

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
    """Queue a copy. `flags` are the chip's interrupt flags; they have no effect here.

    Returns:
        A handle, 1 or more; or IDMA_ERR_BAD_TRANSFER, IDMA_ERR_QUEUE_FULL.
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
    """Queue a copy of rows. Pitches are in bytes; for `flags` see `idma_copy_desc`.

    Returns:
        A handle, 1 or more; or IDMA_ERR_BAD_TRANSFER, IDMA_ERR_QUEUE_FULL.
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
    """Poll: 1 if the transfer is done and its bytes have moved, 0 if not yet.

    Raises:
        UnknownHandle: the code that a failed copy returned: the op's task fails with the reason. Any other handle that
            no copy returned counts as done on a core, and is reported (``dma-handle``); without a core it raises too.
            On the chip such a wait never ends, or ends by chance.
    """
    return int(current().desc_done(handle))


def idma_buffer_status() -> int:
    """Poll: return how many descriptors are still outstanding; 0 is IDMA_OK."""
    return current().poll()


def idma_last_error() -> str:
    """Return the message of the last call that returned a negative code. Only in the emulator, not on the chip."""
    return current().last_error
