"""An image that serves FastRPC's interface ``asr``: layers of a network, in uint8.

hbrt start --image fastrpc_image.py, or HBRT_IMAGE=fastrpc_image.py. As 'hbrt idl' reads it:

    interface asr : remote_handle64 {
      long forward(in sequence<octet> input, in sequence<octet> weights, rout sequence<octet> output, in long layers);
    };

The skeleton is written by hand here; 'hbrt idl' generates one, which decodes the block of lengths.
"""

import struct

import numpy as np

from dsp_server import hb_dsp_env_init, hb_dsp_start
from dsp_server.fastrpc import AeeError, register_interface

FORWARD = 0x02030100  # method 2, three input buffers, one output buffer
EBADPARM = 0xE


class Asr:
    """One open handle."""

    def invoke(self, word: int, arguments: list[memoryview]) -> int:
        """The output of ``layers`` layers, each a square matrix with as many rows as there are inputs."""
        if word != FORWARD:
            raise AeeError(EBADPARM, f"Unknown scalar word {word:#010x}: it belongs to no method.")
        block, given, weights, output = arguments
        input_len, weights_len, output_len, layers = struct.unpack_from("<IIIi", block)
        if layers < 0 or weights_len < layers * input_len * input_len or output_len != input_len:
            raise AeeError(
                EBADPARM, f"{layers} layers of {input_len} inputs do not fit {weights_len} bytes of weights."
            )
        values = np.frombuffer(given, np.uint8, input_len)
        matrices = np.frombuffer(weights, np.uint8, layers * input_len**2).reshape(layers, input_len, input_len)
        for matrix in matrices:
            sums = values.astype(np.int32) @ matrix.astype(np.int32)
            values = (sums * 255 // max(int(sums.max()), 1)).astype(np.uint8)
        np.frombuffer(output, np.uint8, output_len)[:] = values
        return 0

    def close(self) -> None:
        """The handle is closed."""


def main() -> None:
    """Serve the interface."""
    hb_dsp_env_init()
    register_interface("asr_skel_handle_invoke", lambda _: Asr())
    hb_dsp_start()
