"""Layers of YOLOv9 and YOLO12, from their public descriptions: depths, widths, blocks. Weight values are not needed.

Sources: the configuration files of ultralytics.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from hbrt.accelerators.layer import Net, Tensor
from hbrt.accelerators.yolo import c3, c3k2, heads, nested, proto, sppf, width_of

_HEAD: Final = 32
"""Channels per head of YOLO12's attention."""


class _V9(NamedTuple):
    """A scale of YOLOv9: channels of the stem, of the blocks by stride, of the downsampling paths; repeats."""

    stem: tuple[int, int]
    first: int
    blocks: tuple[int, int, int]
    down: tuple[int, int]
    repeats: int


_SCALES: Final = {
    "t": _V9((16, 32), 32, (64, 96, 128), (48, 64), 3),
    "s": _V9((32, 64), 64, (128, 192, 256), (96, 128), 3),
    "m": _V9((32, 64), 128, (240, 360, 480), (180, 240), 1),
    "c": _V9((64, 128), 256, (512, 512, 512), (256, 512), 1),
}


def yolov9(scale: str, *, head: str = "detect", size: int = 640) -> Net:
    """YOLOv9; ``head`` is detect or seg."""
    net, one, is_c = Net(), _SCALES[scale], scale == "c"

    def csp(x: Tensor, channels: int) -> Tensor:
        return c3(net, x, channels, one.repeats, kernel=3)

    def elan(x: Tensor, channels: int, wide: int, inner: int, *, is_plain: bool = False) -> Tensor:
        net.conv(x, wide)
        half = Tensor(wide // 2, x.height, x.width)
        a = net.conv(half if is_plain else csp(half, inner), inner, 3)
        b = net.conv(a if is_plain else csp(a, inner), inner, 3)
        return net.conv(net.concat(half, half, a, b), channels)

    def block(x: Tensor, channels: int) -> Tensor:
        return elan(x, channels, channels, channels // 2)

    def down(x: Tensor, channels: int) -> Tensor:
        x = net.pool(x)
        if not is_c:
            return net.conv(x, channels, 3, 2)
        half = Tensor(x.channels // 2, x.height, x.width)
        return net.concat(net.conv(half, channels // 2, 3, 2), net.conv(net.pool(half, 2), channels // 2))

    of_p3, of_p4, of_p5 = one.blocks
    image = net.conv(net.conv(Tensor(3, size, size), one.stem[0], 3, 2), one.stem[1], 3, 2)
    if is_c:
        p3 = x = elan(down(elan(image, 256, 128, 64), 256), of_p3, 256, 128)
    else:
        first = elan(image, one.first, one.first, one.first // 2, is_plain=scale in "ts")
        p3 = x = block(down(first, of_p3), of_p3)
    p4 = x = block(down(x, of_p4), of_p4)
    x = block(down(x, of_p5), of_p5)
    p5 = x = sppf(net, x, of_p5)
    n4 = x = block(net.concat(net.up(x), p4), of_p4)
    o3 = x = block(net.concat(net.up(x), p3), 256 if is_c else of_p3)
    o4 = x = block(net.concat(down(x, one.down[0]), n4), of_p4)
    o5 = block(net.concat(down(x, one.down[1]), p5), of_p5)
    heads(net, (o3, o4, o5), head)
    if head == "seg":
        proto(net, o3, 256)
    return net


def yolo12(scale: str, size: int = 640) -> Net:
    """YOLO12, with attention over areas of a feature map."""
    depth, width, most = {
        "n": (0.5, 0.25, 1024), "s": (0.5, 0.5, 1024), "m": (0.5, 1.0, 512), "l": (1.0, 1.0, 512), "x": (1.0, 1.5, 512),
    }[scale]  # fmt: skip
    net, is_large = Net(), scale in "lx"

    def c(channels: int) -> int:
        return width_of(min(channels, most) * width)

    def d(count: int) -> int:
        return max(round(count * depth), 1)

    def block(x: Tensor, channels: int, *, has_c3k: bool = False, ratio: float = 0.5) -> Tensor:
        return c3k2(net, x, channels, d(2), has_c3k=has_c3k or scale in "mlx", ratio=ratio)

    def attend(x: Tensor, areas: int) -> Tensor:
        pixels = x.height * x.width // areas
        net.conv(x, 3 * x.channels, act="")
        scores = net.matmul(x, x, Tensor(x.channels // _HEAD * areas, pixels, pixels), _HEAD)
        net.pointwise(scores)
        y = net.matmul(x, scores, x, pixels)
        y = net.add(y, net.conv(x, x.channels, 7, groups=x.channels, act=""))
        x = net.add(x, net.conv(y, x.channels, act=""))
        inner = int(x.channels * (1.2 if is_large else 2))
        return net.add(x, net.conv(net.conv(x, inner), x.channels, act=""))

    def attention(x: Tensor, channels: int, areas: int) -> Tensor:
        parts = [net.conv(x, channels // 2)]
        for _ in range(d(4)):
            parts.append(attend(attend(parts[-1], areas), areas))
        y = net.conv(net.concat(*parts), channels)
        return net.add(x, y) if is_large else y

    def plain(x: Tensor, channels: int) -> Tensor:
        parts = [net.conv(x, channels // 2)]
        for _ in range(d(2)):
            parts.append(nested(net, parts[-1], channels // 2))
        return net.conv(net.concat(*parts), channels)

    x = net.conv(net.conv(Tensor(3, size, size), c(64), 3, 2), c(128), 3, 2)
    p3 = x = block(net.conv(block(x, c(256), ratio=0.25), c(256), 3, 2), c(512), ratio=0.25)
    p4 = x = attention(net.conv(x, c(512), 3, 2), c(512), 4)
    p5 = x = attention(net.conv(x, c(1024), 3, 2), c(1024), 1)
    n4 = x = plain(net.concat(net.up(x), p4), c(512))
    o3 = x = plain(net.concat(net.up(x), p3), c(256))
    o4 = x = plain(net.concat(net.conv(x, c(256), 3, 2), n4), c(512))
    o5 = block(net.concat(net.conv(x, c(512), 3, 2), p5), c(1024), has_c3k=True)
    heads(net, (o3, o4, o5), "detect", is_light=True)
    return net
