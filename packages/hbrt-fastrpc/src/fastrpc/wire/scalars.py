"""The scalar word of an invocation: the method, and the number of arguments of each kind. Pure.

Arguments come in the order input buffers, output buffers, input handles, output handles.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fastrpc.wire.aee import Aee, AeeError

MAX_BUFFERS: Final = 255
MAX_HANDLES: Final = 15
LONG_METHOD: Final = 31
"""Stands in the word for methods from this number on; the first word of the first input buffer has the number."""
_MAX_METHOD: Final = 31
_MAX_ATTRIBUTE: Final = 7


class Scalars(NamedTuple):
    """What a scalar word says.

    Attributes:
        method: 0..31; 31 says that the number is in the first input buffer.
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
                    Aee.AEE_EMAXBUFS, f"A call has 0 to {most} {what}, and this one has {given}. Put several into one."
                )
        if not (0 <= self.method <= _MAX_METHOD and 0 <= self.attribute <= _MAX_ATTRIBUTE):
            raise AeeError(
                Aee.AEE_EBADPARM,
                f"The method {self.method} or the attribute {self.attribute} does not fit the scalar word: they are "
                f"at most {_MAX_METHOD} and {_MAX_ATTRIBUTE}.",
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
    """How many arguments a scalar word names."""
    return (word >> 16 & 0xFF) + (word >> 8 & 0xFF) + (word >> 4 & 0xF) + (word & 0xF)


def make(method: int, inputs: int, outputs: int, input_handles: int = 0, output_handles: int = 0) -> int:
    """The word of a method; a method from 31 on travels as 31. Raises as ``Scalars.word``."""
    return Scalars(min(method, LONG_METHOD), inputs, outputs, input_handles, output_handles).word()
