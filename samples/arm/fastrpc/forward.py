"""A network on the DSP over FastRPC: one call and one buffer of weights per layer, against one call and one buffer.

python forward.py [DIRECTORY] writes forward.npy into DIRECTORY. The board has the image samples/dsp/fastrpc_image.py.
"""

import ctypes
import sys
from typing import Any

import numpy as np

import fastrpc as frpc

LAYERS, WIDTH = 8, 128
INPUT = np.random.default_rng(0).integers(0, 256, WIDTH, np.uint8)
WEIGHTS = np.random.default_rng(1).integers(0, 256, (LAYERS, WIDTH, WIDTH), np.uint8)
URI = "file:///libasr_skel.so?asr_skel_handle_invoke&_modver=1.0&_dom=cdsp"
FORWARD = 0x02030100  # method 2, three input buffers, one output buffer


def check(code: int, call: str) -> None:
    """End the program with the message of a failed call."""
    if code:
        sys.exit(f"{call} returned {code}: {frpc.last_error()}")


def shared(size: int) -> tuple[int, "np.ndarray[Any, Any]"]:
    """Address and bytes of shared memory, whose contents are not copied."""
    address = frpc.rpcmem_alloc(frpc.RPCMEM_HEAP_ID_SYSTEM, frpc.RPCMEM_DEFAULT_FLAGS, size)
    if not address:
        sys.exit(f"rpcmem_alloc: {frpc.last_error()}")
    return address, np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def forward(handle: Any, given: int, weights: int, weights_len: int, output: int, layers: int) -> None:
    """One call: the block of lengths and scalars, then the buffers."""
    block = (ctypes.c_uint32 * 4)(WIDTH, weights_len, WIDTH, layers)
    arguments = (frpc.remote_arg * 4)()
    buffers = ((ctypes.addressof(block), 16), (given, WIDTH), (weights, weights_len), (output, WIDTH))
    for one, (address, size) in zip(arguments, buffers, strict=True):
        one.buf.pv, one.buf.nLen = address, size
    check(frpc.remote_handle64_invoke(handle, FORWARD, arguments), "remote_handle64_invoke")


def main(output_dir: str = ".") -> Any:
    """Returns the output of LAYERS layers of WEIGHTS for INPUT."""
    handle = frpc.remote_handle64()
    check(frpc.remote_handle64_open(URI, handle), "remote_handle64_open")

    x, x_bytes = shared(2 * WIDTH)
    each = [shared(WIDTH * WIDTH) for _ in range(LAYERS)]
    x_bytes[:WIDTH] = INPUT
    for (_, matrix), values in zip(each, WEIGHTS, strict=True):
        matrix[:] = values.ravel()
    for address, _ in each:
        forward(handle, x, address, WIDTH * WIDTH, x + WIDTH, 1)
        x_bytes[:WIDTH] = x_bytes[WIDTH:]
    by_layer = x_bytes[WIDTH:].copy()

    whole, all_bytes = shared(WEIGHTS.nbytes)
    all_bytes[:] = WEIGHTS.ravel()
    x_bytes[:WIDTH] = INPUT
    forward(handle, x, whole, WEIGHTS.nbytes, x + WIDTH, LAYERS)
    result = x_bytes[WIDTH:].copy()

    print(f"{LAYERS} calls with a buffer of weights each, and 1 call with one: the outputs are", end=" ")
    print("the same." if np.array_equal(by_layer, result) else "DIFFERENT.")
    print(frpc.statistics())
    check(frpc.remote_handle64_close(handle), "remote_handle64_close")
    for address in (x, whole, *(address for address, _ in each)):
        frpc.rpcmem_free(address)
    np.save(f"{output_dir}/forward.npy", result)
    print(f"Wrote {output_dir}/forward.npy")
    return result


if __name__ == "__main__":
    main(*sys.argv[1:])
