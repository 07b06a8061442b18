"""An op keeps an intermediate result in its input block."""

from calls import copy_by

NAMED = "input-written"


def wrong_op(src: memoryview, dst: memoryview, tm: object) -> int:
    del tm
    for at in range(64):
        src[at] = src[at] ^ 0x80
    dst[:] = src
    return 0


def corrected_op(src: memoryview, dst: memoryview, tm: object) -> int:
    del tm
    dst[:] = src
    for at in range(64):
        dst[at] = dst[at] ^ 0x80
    return 0


OPS = {0x1140: wrong_op, 0x1141: corrected_op}


def wrong() -> None:
    copy_by(0x1140)


def corrected() -> None:
    copy_by(0x1141)
