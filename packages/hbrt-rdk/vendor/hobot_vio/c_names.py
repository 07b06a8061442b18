"""What libspcdev.so calls for cameras, codecs and displays: those of ``libsrcampy``, by handle.

``native/include/sp`` declares them. Addresses are numbers; a call for which a board returns -1 does the same here, and
prints the reason on standard error.
Source: RDK documentation, C multimedia interface, https://github.com/HorizonRDK/rdk_x3_doc
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import wraps
from itertools import count
from typing import Any, Final, TypeVar

import cv2

from arm_client.c_library.prototypes import Prototype, without_body
from hobot_vio.libsrcampy import Camera, Decoder, Display, Encoder, bind, unbind
from hobot_vio.pictures import tell, to_nv12

_MAX_SIZES: Final = 32
_HANDLE_STEP: Final = 16
_handles: Final = count(0x1000, _HANDLE_STEP)
_objects: Final[dict[int, Any]] = {}
_calls: Final[dict[str, Callable[..., int]]] = {}
TYPES: Final[Mapping[str, Any]] = {}
_Object = TypeVar("_Object")


class _Vio(Camera):
    """A camera or a scaler; a camera may crop and rotate as well."""

    def open_camera(self, sizes: list[list[int]], how: list[int], crops: list[list[int]], turns: list[int]) -> int:
        """Open a camera with these sizes, crops and rotations; ``how`` is the sensor's height, width and fps."""
        raw_height, raw_width, fps = how
        widths, heights = ([one[at] for one in sizes] for at in range(2))
        code = self.open_cam(0, -1, fps, widths, heights, raw_height, raw_width, crops)
        if not code:
            self._turns = turns
        return code

    def whole(self, width: int, height: int) -> bytes | None:
        """The next frame, not cropped or rotated, by default in the input's size; None if there is no frame."""
        picture = self.frame()
        size = (width, height) if width > 0 and height > 0 else self._input
        return None if picture is None else to_nv12(picture, *size)


def function(name: str, given: Prototype, host: Any) -> Callable[..., int]:
    """Like ``Guest.function`` of arm_client/c_library/host.py."""
    del given, host
    return _calls.get(name) or without_body(name, _refuse)


def refusal(name: str, status: int) -> None:
    """Like ``Guest.refusal`` of arm_client/c_library/host.py: ``tell`` has already printed it."""
    del name, status


def _refuse(sentence: str) -> int:
    tell(sentence)
    return -1


def _call(call: Callable[..., int]) -> Callable[..., int]:
    """Register a function as the call with its name, which prints the error and returns -1 if the function raises."""

    @wraps(call)
    def called(*given: int) -> int:
        try:
            return call(*given)
        except (OSError, ValueError, cv2.error) as error:
            return _refuse(f"{call.__name__}: {error}")

    _calls[call.__name__] = called
    return called


def _new(kind: type) -> Callable[[], int]:
    def new() -> int:
        handle = next(_handles)
        _objects[handle] = kind()
        return handle

    return new


@_call
def _release(obj: int) -> int:
    """Release an object; NULL is ignored."""
    if obj and _objects.pop(obj, None) is None:
        raise ValueError(f"unknown object {obj:#x}: not initialized, or released before.")
    return 0


for _name, _kind in {"vio": _Vio, "encoder": Encoder, "decoder": Decoder, "display": Display}.items():
    _calls[f"sp_init_{_name}_module"] = _new(_kind)
    _calls[f"sp_release_{_name}_module"] = _release


def _of(obj: int, kind: type[_Object]) -> _Object:
    """The object of a handle.

    Raises:
        ValueError: unknown handle of this kind.
    """
    found = _objects.get(obj)
    if found is None or not isinstance(found, kind):
        raise ValueError(f"unknown object {obj:#x}: not initialized by the module's sp_init_..., or released.")
    return found


def _numbers(address: int, number: int) -> list[int]:
    """This many int32 values at an address; an empty list for NULL."""
    if not 0 < number <= _MAX_SIZES:
        raise ValueError(f"Invalid chn_num {number}: must be 1 to {_MAX_SIZES}.")
    return list((ctypes.c_int32 * number).from_address(address)) if address else []


def _rows(number: int, *addresses: int) -> list[list[int]]:
    """Rows of numbers, from arrays with one number per row; empty if an array is NULL."""
    columns = [_numbers(one, number) for one in addresses]
    return [list(row) for row in zip(*columns, strict=True)] if all(columns) else []


def _given(address: int, size: int) -> bytes:
    if not address or size < 0:
        raise ValueError("no data: the address is NULL." if size >= 0 else f"Invalid size {size}: must be 0 or more.")
    return ctypes.string_at(address, size)


def _answer(address: int, data: bytes | None) -> int:
    """Write data to the program's buffer; returns 0, or -1 if there is no data."""
    if data is None:
        return -1
    if not address:
        raise ValueError("the buffer's address is NULL.")
    ctypes.memmove(address, data, len(data))
    return 0


@_call
def sp_open_camera(obj: int, pipe: int, video: int, number: int, widths: int, heights: int) -> int:
    """Open a camera with frames in each size."""
    return sp_open_camera_v3(obj, pipe, video, number, 0, widths, heights, 0, 0, 0, 0, 0)


@_call
def sp_open_camera_v2(obj: int, pipe: int, video: int, number: int, how: int, widths: int, heights: int) -> int:
    """Like ``sp_open_camera``, but also takes the sensor's height, width and fps."""
    return sp_open_camera_v3(obj, pipe, video, number, how, widths, heights, 0, 0, 0, 0, 0)


@_call
def sp_open_camera_v3(
    obj: int, pipe: int, video: int, number: int, how: int, widths: int, heights: int, *processed: int
) -> int:
    """Like ``sp_open_camera_v2``, but also takes a crop and a rotation for each size."""
    del pipe, video
    *crops, turns = processed
    sensor = _numbers(how, 3) or [-1, -1, -1]
    sizes = _rows(number, widths, heights)
    return _of(obj, _Vio).open_camera(sizes, sensor, _rows(number, *crops), _turns(turns, number))


@_call
def sp_open_vps(
    obj: int, pipe: int, number: int, mode: int, width: int, height: int, widths: int, heights: int, *processed: int
) -> int:
    """Open a scaler for frames of one size."""
    *crops, turns = processed
    return _of(obj, _Vio).open_vps(
        pipe,
        mode,
        src_size=(width, height),
        dst_size=_rows(number, widths, heights),
        crop_rect=_rows(number, *crops),
        rotate=_turns(turns, number),
    )


def _turns(address: int, number: int) -> list[int]:
    """Convert quarter turns or degrees to quarter turns."""
    return [one // 90 if one >= 90 else one for one in _numbers(address, number)]


@_call
def sp_vio_close(obj: int) -> int:
    """Close a camera or a scaler."""
    _of(obj, _Vio).close_cam()
    return 0


@_call
def sp_vio_get_frame(obj: int, buffer: int, width: int, height: int, timeout: int) -> int:
    """Write the next frame of a size."""
    del timeout
    return _answer(buffer, _of(obj, _Vio).get_img(2, width, height))


@_call
def sp_vio_set_frame(obj: int, frame: int, size: int) -> int:
    """Pass a frame to a scaler."""
    return _of(obj, _Vio).set_img(_given(frame, size))


@_call
def sp_vio_get_raw(obj: int, buffer: int, width: int, height: int, timeout: int) -> int:
    """Refuse."""
    del buffer, width, height, timeout
    _of(obj, _Vio)
    raise ValueError("raw sensor data is not available; call sp_vio_get_yuv for the picture.")


@_call
def sp_vio_get_yuv(obj: int, buffer: int, width: int, height: int, timeout: int) -> int:
    """Write the next frame in the sensor's size."""
    del timeout
    return _answer(buffer, _of(obj, _Vio).whole(width, height))


@_call
def sp_start_encode(obj: int, channel: int, kind: int, width: int, height: int, bits: int) -> int:
    """Begin a stream."""
    return _of(obj, Encoder).encode(channel, kind, width, height, bits)


@_call
def sp_stop_encode(obj: int) -> int:
    """End the stream."""
    return _of(obj, Encoder).close()


@_call
def sp_encoder_set_frame(obj: int, frame: int, size: int) -> int:
    """Encode a frame."""
    return _of(obj, Encoder).encode_file(_given(frame, size))


@_call
def sp_encoder_get_stream(obj: int, buffer: int) -> int:
    """Write the stream's next part; returns its size in bytes, or -1."""
    part = _of(obj, Encoder).get_img()
    return -1 if part is None else _answer(buffer, part) or len(part)


@_call
def sp_start_decode(obj: int, file: int, channel: int, kind: int, width: int, height: int) -> int:
    """Start decoding a stream file, or no file for use with ``sp_decoder_set_image``."""
    name = ctypes.string_at(file).decode(errors="surrogateescape") if file else ""
    return _of(obj, Decoder).decode(name, channel, kind, width, height)[0]


@_call
def sp_decoder_get_image(obj: int, buffer: int) -> int:
    """Write the next frame."""
    return _answer(buffer, _of(obj, Decoder).get_img())


@_call
def sp_decoder_set_image(obj: int, part: int, channel: int, size: int, eos: int) -> int:
    """Pass the next part of a stream."""
    return _of(obj, Decoder).set_img(_given(part, size), channel, eos)


@_call
def sp_stop_decode(obj: int) -> int:
    """End the stream."""
    return _of(obj, Decoder).close()


@_call
def sp_start_display(obj: int, layer: int, width: int, height: int) -> int:
    """Open a layer."""
    return _of(obj, Display).display(layer, width, height)


@_call
def sp_stop_display(obj: int) -> int:
    """Close all layers."""
    return _of(obj, Display).close()


@_call
def sp_display_set_image(obj: int, frame: int, size: int, layer: int) -> int:
    """Show a frame."""
    return _of(obj, Display).set_img(_given(frame, size), layer)


@_call
def sp_display_draw_rect(obj: int, *how: int) -> int:
    """Draw a rectangle: x0, y0, x1, y1, layer, flush, color, width."""
    return _of(obj, Display).set_graph_rect(*how)


@_call
def sp_display_draw_string(obj: int, x: int, y: int, text: int, *how: int) -> int:
    """Draw text: layer, flush, color, width."""
    return _of(obj, Display).set_graph_word(x, y, ctypes.string_at(text) if text else b"", *how)


@_call
def sp_get_display_resolution(width: int, height: int) -> int:
    """Write the display's size."""
    for address, value in zip((width, height), Display.get_display_res()[0], strict=True):
        ctypes.c_int32.from_address(address).value = value
    return 0


@_call
def sp_module_bind(source: int, kind: int, target: int, other: int) -> int:
    """Send one object's frames to another."""
    del kind, other
    return bind(_of(source, object), _of(target, object))


@_call
def sp_module_unbind(source: int, kind: int, target: int, other: int) -> int:
    """Undo ``sp_module_bind``."""
    del kind, other
    return unbind(_of(source, object), _of(target, object))
