"""Every AEE code once: number, name, sentence; and the error that carries one.

A code that the DSP side's runtime or a skeleton raises arrives at the CPU as ``DSP_ERROR`` plus the code. What a
method's own implementation returns arrives as it is.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Self

DSP_ERROR: Final = 0x8000_0400
_MOST_CODE: Final = 0x3FF


class Aee(IntEnum):
    """A code of a FastRPC call; 0 is success.

    Attributes:
        sentence: What it means.

    Source: qualcomm/fastrpc, AEEStdErr.h, https://github.com/qualcomm/fastrpc
    """

    sentence: str

    def __new__(cls, code: int, sentence: str = "") -> Self:
        """A row of the table."""
        self = int.__new__(cls, code)
        self._value_, self.sentence = code, sentence
        return self

    AEE_SUCCESS = 0, "The call succeeded."
    AEE_EUNKNOWN = -1, "The error is not known."
    AEE_EFAILED = 1, "The call failed."
    AEE_ENOMEMORY = 2, "There is no memory for it."
    AEE_EVERSIONNOTSUPPORT = 4, "The version is not supported."
    AEE_EUNABLETOLOAD = 6, "The skeleton cannot be loaded."
    AEE_EEXPIRED = 0xC, "The time is over."
    AEE_EBADSTATE = 0xD, "The call does not fit the state."
    AEE_EBADPARM = 0xE, "An argument is not valid."
    AEE_EBADITEM = 0x10, "An item is not valid."
    AEE_EUNSUPPORTED = 0x14, "The call, or the method, is not supported."
    AEE_ERESOURCENOTFOUND = 0x16, "A resource is not there."
    AEE_EALREADY = 0x1A, "It was done before."
    AEE_EITEMBUSY = 0x20, "The item is in use."
    AEE_EBUFFERTOOSMALL = 0x26, "A buffer is too small."
    AEE_ENOSUCH = 39, "There is no such item."
    AEE_EINVALIDITEM = 0x2A, "The item is not valid."
    AEE_ENOTALLOWED = 0x2B, "It is not allowed."
    AEE_EINVHANDLE = 0x2C, "The handle is not a live one."
    AEE_EOUTOFHANDLES = 0x2D, "No handle is left."
    AEE_EINTERRUPTED = 46, "The call was interrupted."
    AEE_ENOMORE = 0x2F, "There are no more."
    AEE_EINVALIDDOMAIN = 0x39, "The domain is not valid."
    AEE_EINVALIDFD = 0x3A, "The file descriptor is not valid."
    AEE_EINVALIDDEVICE = 0x3B, "The device is not valid."
    AEE_ENOSUCHMOD = 0x3E, "There is no such module."
    AEE_ENOSUCHSYMBOL = 0x42, "There is no such symbol."
    AEE_ENOSUCHFILE = 0x45, "There is no such file."
    AEE_ENOSUCHHANDLE = 0x46, "There is no such handle."
    AEE_ENOSUCHMAP = 0x48, "There is no such mapping."
    AEE_EBADDOMAIN = 0x4B, "The domain is not valid for this call."
    AEE_EBADOFFSET = 0x4C, "The offset is not valid."
    AEE_EBADSIZE = 0x4D, "The size is not valid."
    AEE_EBADFD = 0x4F, "The file descriptor is not of shared memory."
    AEE_EBADMEMALIGN = 0x55, "The memory is not aligned."
    AEE_EMMAP = 0x65, "Mapping failed."
    AEE_EIONMAP = 0x66, "Mapping shared memory failed."
    AEE_EIONALLOC = 0x67, "Allocating shared memory failed."
    AEE_ECONNRESET = 104, "The domain of the handle has ended."
    AEE_ENORPCMEMORY = 0x68, "There is no shared memory left."  # the vendor's header gives both the same number
    AEE_ENOTINITIALIZED = 0x6B, "It was not initialised."
    AEE_EUNSUPPORTEDAPI = 0x6C, "The call is not supported here."
    AEE_EMAXBUFS = 0x70, "There are too many buffers."
    AEE_EINVARGS = 0x71, "The arguments do not fit the scalar word."
    AEE_ECONNREFUSED = 0x72, "The domain takes no connection."
    AEE_EUNSIGNEDMOD = 0x81, "The module is not signed."
    AEE_ENOSUCHJOB = 0x84, "There is no such job."
    AEE_ENOSESSION = 0x8A, "There is no such session."
    AEE_EINVALIDJOB = 0x182, "The job is not valid."
    AEE_EBUSY = 0x183, "The job has not ended."
    AEE_ESTUBSKELVERMISMATCH = 0x194, "Stub and skeleton are of different versions."
    AEE_ERPC = 0x200, "The remote call failed."
    AEE_EFILE = 0x201, "A file could not be used."
    AEE_EWOULDBLOCK = 516, "The call would have to wait."


class AeeError(Exception):
    """A call of FastRPC failed.

    Attributes:
        code: As the CPU side has it: a code, ``DSP_ERROR`` plus a code, or what a method returned.
        sentence: What was wrong, and what to do.
    """

    def __init__(self, code: int, sentence: str = "") -> None:
        """``sentence``: empty for that of the code."""
        self.code = int(code)
        self.sentence = sentence or describe(code)
        super().__init__(f"{self.sentence} [{name_of(code)}]")


def on_dsp(code: int) -> int:
    """The value by which a code of the DSP side arrives at the CPU."""
    return DSP_ERROR + code if 0 < code <= _MOST_CODE else code


def of_status(status: int) -> int:
    """A task's status, a signed 32-bit integer, as a code: those of the DSP side are above 2^31."""
    unsigned = status & 0xFFFF_FFFF
    return unsigned if DSP_ERROR <= unsigned <= DSP_ERROR + _MOST_CODE else status


def name_of(code: int) -> str:
    """The name of a code, with ``DSP side`` where it arrived from there; the number of what is no code."""
    if DSP_ERROR < code <= DSP_ERROR + _MOST_CODE:
        return f"{name_of(code - DSP_ERROR)} from the DSP side, {code:#x}"
    try:
        return Aee(code).name
    except ValueError:
        return f"{code:#x}" if code >= 0 else str(code)


def describe(code: int) -> str:
    """The sentence of a code; a number that is none came from a method."""
    if DSP_ERROR < code <= DSP_ERROR + _MOST_CODE:
        return describe(code - DSP_ERROR)
    try:
        return Aee(code).sentence
    except ValueError:
        return f"The method returned {name_of(code)}."
