"""The chips that a model can be built for, and the toolkit's data about each."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from enum import IntEnum
from functools import cache

from hbrt.profiles.profile import Profile, find
from rknn_api.errors import invalid_parameter


class CoreMask(IntEnum):
    """Which NPU cores a model runs on.

    Source: RKNN SDK advanced guide (chapter 5), 5.3.1
    Emulator: the numbers of NPU_CORE_ALL and above.
    """

    NPU_CORE_AUTO = 0
    NPU_CORE_0 = 1
    NPU_CORE_1 = 2
    NPU_CORE_2 = 4
    NPU_CORE_0_1 = 3
    NPU_CORE_0_1_2 = 7
    NPU_CORE_ALL = 0xFFFF


_MORE_DTYPES = {
    "rk3562": ("w8a16",),
    **dict.fromkeys(("rk3576", "rv1126b"), ("w4a16",)),
    **dict.fromkeys(("rv1103", "rv1106"), ("w16a16i",)),
}


@dataclass(frozen=True)
class Platform:
    """A chip.

    Attributes:
        name: As in ``target_platform``.
        profile: Its constants.
    """

    name: str
    profile: Profile

    @property
    def cores(self) -> int:
        """NPU cores."""
        return self.profile.whole("cores.npu.count")

    @property
    def has_general_api(self) -> bool:
        """Whether it supports set_input_shapes, dup_context, custom ops: models with several shapes, and batches."""
        return self.profile.whole("npu.functions") <= 2

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The values of ``quantized_dtype`` that this emulator supports."""
        return ("w8a8", *_MORE_DTYPES.get(self.name, ()))

    def cores_of(self, mask: int) -> tuple[int, ...]:
        """The cores of a mask; (0,) for AUTO, which uses one.

        Raises:
            RknnError: RKNN_ERR_PARAM_INVALID: the chip has no such core, or the mask is invalid.

        Source: RKNN SDK advanced guide (chapter 5), 5.3.1
        """
        if mask == CoreMask.NPU_CORE_AUTO and isinstance(mask, int):
            return (0,)
        if self.cores == 1:
            raise invalid_parameter(
                f"core_mask is {_mask_name(mask)}, but {self.name} has one NPU core; omit core_mask."
            )
        if mask == CoreMask.NPU_CORE_ALL:
            return tuple(range(self.cores))
        if mask not in set(CoreMask) or not isinstance(mask, int):
            names = ", ".join(one.name for one in CoreMask)
            raise invalid_parameter(f"Invalid core_mask {mask!r}: must be one of {names}.")
        wanted = tuple(core for core in range(3) if mask >> core & 1)
        if wanted[-1] >= self.cores:
            raise invalid_parameter(
                f"core_mask is {_mask_name(mask)}, but {self.name} has the NPU cores 0 to {self.cores - 1}."
            )
        return wanted


def _mask_name(mask: int) -> str:
    return CoreMask(mask).name if mask in set(CoreMask) else repr(mask)


PLATFORMS = (
    *("rv1103", "rv1103b", "rv1106", "rv1106b", "rv1126b"),
    *("rk2118", "rk3562", "rk3566", "rk3568", "rk3576", "rk3588"),
)
"""Names of the chips; each has a profile.

Source: RKNN-Toolkit2 API Reference (2.3.2), config, https://github.com/airockchip/rknn-toolkit2
"""


@cache
def platform_of(name: str) -> Platform:
    """A chip by its name, case-insensitive; "rk3588s" is an rk3588.

    Raises:
        RknnError: RKNN_ERR_PARAM_INVALID: unknown chip; suggests the nearest name.
    """
    wanted = "rk3588" if str(name).lower() == "rk3588s" else str(name).lower()
    if wanted not in PLATFORMS:
        near = get_close_matches(wanted, PLATFORMS, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(PLATFORMS)}."
        raise invalid_parameter(f"Unknown platform {name!r}; {hint}")
    return Platform(wanted, find(wanted))
