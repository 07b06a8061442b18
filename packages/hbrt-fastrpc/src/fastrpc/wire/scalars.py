"""The scalar word of an invocation: the method, and the number of arguments of each kind. Pure.

Arguments come in the order input buffers, output buffers, input handles, output handles.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fastrpc.wire.aee import Aee, AeeError

MAX_BUFFERS: Final = 255
MAX_HANDLES: Final = 15
LONG_METHOD: Final = 31
"""Marks methods from this number on; their number is in the first word of the first input buffer."""
_MAX_METHOD: Final = 31
_MAX_ATTRIBUTE: Final = 7


class Scalars(NamedTuple):
    """The contents of a scalar word.

    Attributes:
        method: 0..31; 31 means that the number is in the first input buffer.
        inputs: Input buffers, 0..255.
        outputs: Output buffers, 0..255.
        input_handles: 0..15.
        output_handles: 0..15.
        attribute: 0..7.

    Source: qualcomm/fastrpc, remote.h, https://github.com/qualcomm/fastrpc
    """

    method: int
    inputs: int
    outputs: int
    input_handles: int = 0
    output_handles: int = 0
    attribute: int = 0

    @property
    def total(self) -> int:
        """How many arguments there are."""
        return self.inputs + self.outputs + self.input_handles + self.output_handles

    @property
    def buffers(self) -> int:
        """The number of buffers among them; buffers come first."""
        return self.inputs + self.outputs

    def word(self) -> int:
        """The word.

        Raises:
            AeeError: AEE_EMAXBUFS: more than the word can encode; AEE_EBADPARM: the method or attribute is out of
                range.
        """
        for what, given, most in (
            ("input buffers", self.inputs, MAX_BUFFERS),
            ("output buffers", self.outputs, MAX_BUFFERS),
            ("input handles", self.input_handles, MAX_HANDLES),
            ("output handles", self.output_handles, MAX_HANDLES),
        ):
            if not 0 <= given <= most:
                raise AeeError(
                    Aee.AEE_EMAXBUFS, f"A call can have 0 to {most} {what}, got {given}. Combine several into one."
                )
        if not (0 <= self.method <= _MAX_METHOD and 0 <= self.attribute <= _MAX_ATTRIBUTE):
            raise AeeError(
                Aee.AEE_EBADPARM,
                f"The method {self.method} or the attribute {self.attribute} does not fit the scalar word: the "
                f"maximum is {_MAX_METHOD} and {_MAX_ATTRIBUTE}.",
            )
        return (
            self.attribute << 29
            | self.method << 24
            | self.inputs << 16
            | self.outputs << 8
            | self.input_handles << 4
            | self.output_handles
        )


def split(word: int) -> Scalars:
    """Decode a scalar word from its low 32 bits."""
    return Scalars(
        word >> 24 & 0x1F, word >> 16 & 0xFF, word >> 8 & 0xFF, word >> 4 & 0xF, word & 0xF, word >> 29 & 0x7
    )


def count(word: int) -> int:
    """The number of arguments in a scalar word."""
    return (word >> 16 & 0xFF) + (word >> 8 & 0xFF) + (word >> 4 & 0xF) + (word & 0xF)


def make(method: int, inputs: int, outputs: int, input_handles: int = 0, output_handles: int = 0) -> int:
    """The word of a method; methods from 31 on are encoded as 31. Raises as ``Scalars.word``."""
    return Scalars(min(method, LONG_METHOD), inputs, outputs, input_handles, output_handles).word()
