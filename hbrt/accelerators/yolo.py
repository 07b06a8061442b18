"""Layers of the YOLO families, from their public descriptions: depths, widths, blocks. Weight values are not needed.

Sources: the configuration files of ultralytics (v5, v8, v10, v11), of YOLOv6 and YOLOv7, of YOLOX and of PP-YOLOE.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Final

from hbrt.accelerators.layer import Net, Tensor

COCO: Final = 80
"""Classes of the published detectors."""


def width_of(channels: float) -> int:
    """Return a scaled number of channels, rounded up to a multiple of 8."""
    return ceil(channels / 8) * 8


def bottleneck(net: Net, x: Tensor, channels: int, ratio: float = 0.5, act: str = "silu", kernel: int = 1) -> Tensor:
    """Two convolutions, with a residual sum if the sizes agree."""
    y = net.conv(net.conv(x, int(channels * ratio), kernel, act=act), channels, 3, act=act)
    return net.add(x, y) if x.channels == channels else y


def c3(net: Net, x: Tensor, channels: int, depth: int, act: str = "silu", kernel: int = 1) -> Tensor:
    """YOLOv5's block; C3k with the first kernel of its bottlenecks."""
    inner = channels // 2
    y = net.conv(x, inner, act=act)
    for _ in range(depth):
        y = bottleneck(net, y, inner, 1.0, act, kernel)
    return net.conv(net.concat(y, net.conv(x, inner, act=act)), channels, act=act)


def c2f(
    net: Net, x: Tensor, channels: int, depth: int, block: Callable[[Net, Tensor, int], Tensor], ratio: float = 0.5
) -> Tensor:
    """YOLOv8's block, around an inner block with a fraction of the channels."""
    inner = int(channels * ratio)
    net.conv(x, 2 * inner)
    y = Tensor(inner, x.height, x.width)
    parts = [y, y]
    for _ in range(depth):
        y = block(net, y, inner)
        parts.append(y)
    return net.conv(net.concat(*parts), channels)


def plain(net: Net, x: Tensor, channels: int) -> Tensor:
    """The inner block of C2f."""
    return bottleneck(net, x, channels, 1.0, kernel=3)


def nested(net: Net, x: Tensor, channels: int) -> Tensor:
    """The inner block of C3k2, when it is a C3k."""
    return c3(net, x, channels, 2, kernel=3)


def c3k2(net: Net, x: Tensor, channels: int, depth: int, *, has_c3k: bool, ratio: float = 0.5) -> Tensor:
    """YOLO11's block: C2f around C3k, or around a bottleneck of half the channels."""

    def half(net: Net, x: Tensor, channels: int) -> Tensor:
        return bottleneck(net, x, channels, 0.5, kernel=3)

    return c2f(net, x, channels, depth, nested if has_c3k else half, ratio)


def sppf(net: Net, x: Tensor, channels: int, act: str = "silu") -> Tensor:
    """Three pools in a row."""
    y = net.conv(x, x.channels // 2, act=act)
    parts = [y]
    for _ in range(3):
        parts.append(net.pool(parts[-1]))
    return net.conv(net.concat(*parts), channels, act=act)


def attention(net: Net, x: Tensor, heads: int, key: int) -> Tensor:
    """Self-attention over the pixels of a small feature map."""
    pixels = x.height * x.width
    net.conv(x, x.channels + 2 * heads * key, act="")
    query = Tensor(heads * key, x.height, x.width)
    scores = net.matmul(query, query, Tensor(heads, pixels, pixels), key)
    net.pointwise(scores)
    y = net.matmul(x, scores, x, pixels)
    net.conv(y, x.channels, 3, groups=x.channels, act="")
    return net.conv(net.add(y, y), x.channels, act="")


def psa(net: Net, x: Tensor, channels: int, depth: int = 1) -> Tensor:
    """YOLOv10's and v11's block of attention."""
    inner = channels // 2
    net.conv(x, 2 * inner)
    y = Tensor(inner, x.height, x.width)
    for _ in range(depth):
        y = net.add(y, attention(net, y, max(1, inner // 64), 32))
        y = net.add(y, net.conv(net.conv(y, 2 * inner), inner, act=""))
    return net.conv(net.concat(y, y), channels)


def detect_v5(net: Net, features: Sequence[Tensor], extra: int = 0) -> None:
    """Heads with anchors."""
    for x in features:
        net.pointwise(net.conv(x, 3 * (COCO + 5 + extra), act=""))


def detect_v8(
    net: Net, features: Sequence[Tensor], classes: int = COCO, extra: int = 0, *, is_light: bool = False
) -> None:
    """Anchor-free heads: boxes, classes, and ``extra`` numbers for masks, points or angles."""
    first = features[0].channels
    box, score = max(16, first // 4, 64), max(first, min(classes, 100))
    for x in features:
        net.conv(net.conv(net.conv(x, box, 3), box, 3), 64, act="")
        y = x
        for _ in range(2):
            y = net.conv(net.conv(y, y.channels, 3, groups=y.channels), score) if is_light else net.conv(y, score, 3)
        net.pointwise(net.conv(y, classes, act=""))
        if extra:
            inner = max(first // 4, extra)
            net.conv(net.conv(net.conv(x, inner, 3), inner, 3), extra, act="")


def proto(net: Net, x: Tensor, channels: int) -> None:
    """The mask prototypes of a segmentation."""
    y = net.conv(x, channels, 3)
    y = net.transposed(y, channels, 2, 2)
    net.conv(net.conv(y, channels, 3), 32)


def yolov5(depth: float, width: float, *, act: str = "silu", head: str = "v5", size: int = 640) -> Net:
    """YOLOv5 of release 7; ``head`` is v5, v8 (as the u models have it) or seg."""
    net = Net()

    def c(channels: int) -> int:
        return width_of(channels * width)

    def d(count: int) -> int:
        return max(round(count * depth), 1)

    x = net.conv(Tensor(3, size, size), c(64), 6, 2, act=act)
    x = c3(net, net.conv(x, c(128), 3, 2, act=act), c(128), d(3), act)
    p3 = x = c3(net, net.conv(x, c(256), 3, 2, act=act), c(256), d(6), act)
    p4 = x = c3(net, net.conv(x, c(512), 3, 2, act=act), c(512), d(9), act)
    x = c3(net, net.conv(x, c(1024), 3, 2, act=act), c(1024), d(3), act)
    x = sppf(net, x, c(1024), act)
    n5 = x = net.conv(x, c(512), act=act)
    x = c3(net, net.concat(net.up(x), p4), c(512), d(3), act)
    n4 = x = net.conv(x, c(256), act=act)
    o3 = x = c3(net, net.concat(net.up(x), p3), c(256), d(3), act)
    o4 = x = c3(net, net.concat(net.conv(x, c(256), 3, 2, act=act), n4), c(512), d(3), act)
    o5 = c3(net, net.concat(net.conv(x, c(512), 3, 2, act=act), n5), c(1024), d(3), act)
    if head == "v8":
        detect_v8(net, (o3, o4, o5))
    else:
        detect_v5(net, (o3, o4, o5), extra=32 if head == "seg" else 0)
    if head == "seg":
        proto(net, o3, c(256))
    return net


def yolov8(depth: float, width: float, most: int, *, head: str = "detect", size: int = 640) -> Net:
    """YOLOv8; ``head`` is detect, seg, pose, obb or cls."""
    net = Net()

    def c(channels: int) -> int:
        return width_of(min(channels, most) * width)

    def d(count: int) -> int:
        return max(round(count * depth), 1)

    x = net.conv(net.conv(Tensor(3, size, size), c(64), 3, 2), c(128), 3, 2)
    x = c2f(net, x, c(128), d(3), plain)
    p3 = x = c2f(net, net.conv(x, c(256), 3, 2), c(256), d(6), plain)
    p4 = x = c2f(net, net.conv(x, c(512), 3, 2), c(512), d(6), plain)
    x = c2f(net, net.conv(x, c(1024), 3, 2), c(1024), d(3), plain)
    if head == "cls":
        return _classify(net, x)
    p5 = x = sppf(net, x, c(1024))
    n4 = x = c2f(net, net.concat(net.up(x), p4), c(512), d(3), plain)
    o3 = x = c2f(net, net.concat(net.up(x), p3), c(256), d(3), plain)
    o4 = x = c2f(net, net.concat(net.conv(x, c(256), 3, 2), n4), c(512), d(3), plain)
    o5 = c2f(net, net.concat(net.conv(x, c(512), 3, 2), p5), c(1024), d(3), plain)
    heads(net, (o3, o4, o5), head)
    if head == "seg":
        proto(net, o3, c(256))
    return net


def heads(net: Net, features: Sequence[Tensor], head: str, *, is_light: bool = False) -> None:
    """The heads of YOLOv8 and its successors; ``head`` is detect, seg, pose or obb."""
    classes = {"pose": 1, "obb": 15}.get(head, COCO)
    detect_v8(net, features, classes, {"seg": 32, "pose": 51, "obb": 1}.get(head, 0), is_light=is_light)


def _classify(net: Net, x: Tensor) -> Net:
    net.linear(net.mean(net.conv(x, 1280)), 1000)
    return net


def yolo11(depth: float, width: float, most: int, *, is_large: bool, head: str = "detect", size: int = 640) -> Net:
    """YOLO11; ``is_large`` for m, l and x, whose C3k2 has C3k inside."""
    net = Net()

    def c(channels: int) -> int:
        return width_of(min(channels, most) * width)

    repeats = max(round(2 * depth), 1)

    def block(x: Tensor, channels: int, *, has_c3k: bool, ratio: float = 0.5) -> Tensor:
        return c3k2(net, x, channels, repeats, has_c3k=has_c3k or is_large, ratio=ratio)

    x = net.conv(net.conv(Tensor(3, size, size), c(64), 3, 2), c(128), 3, 2)
    x = block(x, c(256), has_c3k=False, ratio=0.25)
    p3 = x = block(net.conv(x, c(256), 3, 2), c(512), has_c3k=False, ratio=0.25)
    p4 = x = block(net.conv(x, c(512), 3, 2), c(512), has_c3k=True)
    x = block(net.conv(x, c(1024), 3, 2), c(1024), has_c3k=True)
    if head == "cls":
        return _classify(net, psa(net, x, c(1024), repeats))
    p5 = x = psa(net, sppf(net, x, c(1024)), c(1024), repeats)
    n4 = x = block(net.concat(net.up(x), p4), c(512), has_c3k=False)
    o3 = x = block(net.concat(net.up(x), p3), c(256), has_c3k=False)
    o4 = x = block(net.concat(net.conv(x, c(256), 3, 2), n4), c(512), has_c3k=False)
    o5 = block(net.concat(net.conv(x, c(512), 3, 2), p5), c(1024), has_c3k=True)
    heads(net, (o3, o4, o5), head, is_light=True)
    if head == "seg":
        proto(net, o3, c(256))
    return net


def yolov10(scale: str, size: int = 640) -> Net:
    """YOLOv10; its configuration says where a scale has CIB blocks."""
    depth, width, most = {
        "n": (0.33, 0.25, 1024), "s": (0.33, 0.5, 1024), "m": (0.67, 0.75, 768),
        "b": (0.67, 1.0, 512), "l": (1.0, 1.0, 512), "x": (1.0, 1.25, 512),
    }[scale]  # fmt: skip
    cib_at = {"n": "o5", "s": "p5 o5", "m": "p5 o4 o5", "b": "p5 n4 o4 o5", "l": "p5 n4 o4 o5", "x": "p4 p5 n4 o4 o5"}
    net = Net()

    def c(channels: int) -> int:
        return width_of(min(channels, most) * width)

    def d(count: int) -> int:
        return max(round(count * depth), 1)

    def down(x: Tensor, channels: int) -> Tensor:
        y = net.conv(x, channels)
        return net.conv(y, channels, 3, 2, groups=channels, act="")

    def cib(net: Net, x: Tensor, channels: int) -> Tensor:
        y = net.conv(x, x.channels, 3, groups=x.channels)
        y = net.conv(y, 2 * channels)
        y = net.conv(y, 2 * channels, 7 if scale in "ns" else 3, groups=2 * channels)
        y = net.conv(y, channels)
        return net.add(x, net.conv(y, channels, 3, groups=channels))

    def block(x: Tensor, channels: int, count: int, where: str) -> Tensor:
        return c2f(net, x, channels, d(count), cib if where in cib_at[scale].split() else plain)

    x = net.conv(net.conv(Tensor(3, size, size), c(64), 3, 2), c(128), 3, 2)
    x = block(x, c(128), 3, "p2")
    p3 = x = block(net.conv(x, c(256), 3, 2), c(256), 6, "p3")
    p4 = x = block(down(x, c(512)), c(512), 6, "p4")
    x = block(down(x, c(1024)), c(1024), 3, "p5")
    p5 = x = psa(net, sppf(net, x, c(1024)), c(1024))
    n4 = x = block(net.concat(net.up(x), p4), c(512), 3, "n4")
    o3 = x = block(net.concat(net.up(x), p3), c(256), 3, "o3")
    o4 = x = block(net.concat(net.conv(x, c(256), 3, 2), n4), c(512), 3, "o4")
    o5 = block(net.concat(down(x, c(512)), p5), c(1024), 3, "o5")
    detect_v8(net, (o3, o4, o5), is_light=True)
    return net


def yolox(depth: float, width: float, size: int = 640) -> Net:
    """YOLOX: CSPDarknet with a Focus stem, and two-branch heads."""
    net = Net()

    def c(channels: int) -> int:
        return int(channels * width)

    def d(count: int) -> int:
        return max(round(count * depth), 1)

    image = Tensor(3, size, size)
    x = net.conv(net.move(image, output=Tensor(12, size // 2, size // 2)), c(64), 3)
    x = c3(net, net.conv(x, c(128), 3, 2), c(128), d(3))
    p3 = x = c3(net, net.conv(x, c(256), 3, 2), c(256), d(9))
    p4 = x = c3(net, net.conv(x, c(512), 3, 2), c(512), d(9))
    x = net.conv(x, c(1024), 3, 2)
    y = net.conv(x, c(512))
    x = net.conv(net.concat(y, net.pool(y), net.pool(y), net.pool(y)), c(1024))
    x = c3(net, x, c(1024), d(3))
    n5 = x = net.conv(x, c(512))
    x = c3(net, net.concat(net.up(x), p4), c(512), d(3))
    n4 = x = net.conv(x, c(256))
    o3 = x = c3(net, net.concat(net.up(x), p3), c(256), d(3))
    o4 = x = c3(net, net.concat(net.conv(x, c(256), 3, 2), n4), c(512), d(3))
    o5 = c3(net, net.concat(net.conv(x, c(512), 3, 2), n5), c(1024), d(3))
    for x in (o3, o4, o5):
        y = net.conv(x, c(256))
        scores = net.conv(net.conv(y, c(256), 3), c(256), 3)
        net.pointwise(net.conv(scores, COCO, act=""))
        boxes = net.conv(net.conv(y, c(256), 3), c(256), 3)
        net.conv(boxes, 5, act="")
    return net


def yolov6(scale: str, size: int = 640) -> Net:  # noqa: C901 - its blocks
    """YOLOv6 3.0: RepVGG blocks as one convolution each, ReLU; CSP stages in m."""
    depth, width = {"n": (0.33, 0.25), "s": (0.33, 0.5), "m": (0.6, 0.75)}[scale]
    net, is_csp = Net(), scale == "m"

    def c(channels: int) -> int:
        return width_of(channels * width)

    def d(count: int) -> int:
        return max(round(count * depth), 1)

    def rep(x: Tensor, channels: int, stride: int = 1) -> Tensor:
        return net.conv(x, channels, 3, stride, act="relu")

    def one(x: Tensor, channels: int, kernel: int = 1, stride: int = 1) -> Tensor:
        return net.conv(x, channels, kernel, stride, act="relu")

    def stage(x: Tensor, channels: int, count: int) -> Tensor:
        if not is_csp:
            for _ in range(count):
                x = rep(x, channels)
            return x
        inner = int(channels * 2 / 3)
        y, other = one(x, inner), one(x, inner)
        for _ in range(max(count // 2, 1)):
            y = net.add(y, rep(rep(y, inner), inner))
        return one(net.concat(y, other), channels)

    x = rep(Tensor(3, size, size), c(64), 2)
    p2 = x = stage(rep(x, c(128), 2), c(128), d(6))
    p3 = x = stage(rep(x, c(256), 2), c(256), d(12))
    p4 = x = stage(rep(x, c(512), 2), c(512), d(18))
    x = stage(rep(x, c(1024), 2), c(1024), d(6))
    p5 = sppf(net, x, c(1024), "relu")

    def join(x: Tensor, same: Tensor, below: Tensor, channels: int) -> Tensor:
        up = net.transposed(x, channels, 2, 2)
        return one(net.concat(up, one(same, channels), one(one(below, channels), channels, 3, 2)), channels)

    n5 = one(p5, c(256))
    x = stage(join(n5, p4, p3, c(256)), c(256), d(12))
    n4 = one(x, c(128))
    o3 = x = stage(join(n4, p3, p2, c(128)), c(128), d(12))
    o4 = x = stage(net.concat(one(x, c(128), 3, 2), n4), c(256), d(12))
    o5 = stage(net.concat(one(x, c(256), 3, 2), n5), c(512), d(12))
    for x in (o3, o4, o5):
        y = one(x, x.channels)
        net.pointwise(net.conv(one(y, x.channels, 3), COCO, act=""))
        net.conv(one(y, x.channels, 3), 68 if is_csp else 4, act="")
    return net


def yolov7_tiny(size: int = 640) -> Net:
    """YOLOv7-tiny, with LeakyReLU."""
    net = Net()

    def one(x: Tensor, channels: int, kernel: int = 1, stride: int = 1) -> Tensor:
        return net.conv(x, channels, kernel, stride, act="leaky")

    def elan(x: Tensor, inner: int, channels: int) -> Tensor:
        a, b = one(x, inner), one(x, inner)
        c = one(b, inner, 3)
        return one(net.concat(a, b, c, one(c, inner, 3)), channels)

    x = one(one(Tensor(3, size, size), 32, 3, 2), 64, 3, 2)
    x = elan(x, 32, 64)
    p3 = x = elan(net.pool(x, 2), 64, 128)
    p4 = x = elan(net.pool(x, 2), 128, 256)
    x = elan(net.pool(x, 2), 256, 512)
    a, b = one(x, 256), one(x, 256)
    y = one(net.concat(b, net.pool(b), net.pool(b), net.pool(b)), 256)
    n5 = x = one(net.concat(y, a), 256)
    n4 = x = elan(net.concat(one(p4, 128), net.up(one(x, 128))), 64, 128)
    o3 = x = elan(net.concat(one(p3, 64), net.up(one(x, 64))), 32, 64)
    o4 = x = elan(net.concat(one(x, 128, 3, 2), n4), 64, 128)
    o5 = elan(net.concat(one(x, 256, 3, 2), n5), 128, 256)
    detect_v5(net, [one(x, 2 * x.channels, 3) for x in (o3, o4, o5)])
    return net


def yolov7(size: int = 640) -> Net:
    """YOLOv7 with its heads merged."""
    net = Net()
    conv = net.conv

    def elan(x: Tensor, inner: int, channels: int) -> Tensor:
        a, b = conv(x, inner), conv(x, inner)
        c = conv(conv(b, inner, 3), inner, 3)
        return conv(net.concat(a, b, c, conv(conv(c, inner, 3), inner, 3)), channels)

    def elan_h(x: Tensor, channels: int) -> Tensor:
        a, b = conv(x, channels), conv(x, channels)
        parts = [a, b]
        y = b
        for _ in range(4):
            y = conv(y, channels // 2, 3)
            parts.append(y)
        return conv(net.concat(*parts), channels)

    def down(x: Tensor, channels: int, *more: Tensor) -> Tensor:
        return net.concat(conv(net.pool(x, 2), channels), conv(conv(x, channels), channels, 3, 2), *more)

    x = conv(conv(conv(Tensor(3, size, size), 32, 3), 64, 3, 2), 64, 3)
    x = elan(conv(x, 128, 3, 2), 64, 256)
    p3 = x = elan(down(x, 128), 128, 512)
    p4 = x = elan(down(x, 256), 256, 1024)
    x = elan(down(x, 512), 256, 1024)
    y = conv(conv(conv(x, 512), 512, 3), 512)
    y = conv(conv(net.concat(y, net.pool(y), net.pool(y), net.pool(y)), 512), 512, 3)
    n5 = x = conv(net.concat(y, conv(x, 512)), 512)
    n4 = x = elan_h(net.concat(conv(p4, 256), net.up(conv(x, 256))), 256)
    o3 = x = elan_h(net.concat(conv(p3, 128), net.up(conv(x, 128))), 128)
    o4 = x = elan_h(down(x, 128, n4), 256)
    o5 = elan_h(down(x, 256, n5), 512)
    detect_v5(net, [conv(x, 2 * x.channels, 3) for x in (o3, o4, o5)])
    return net


def ppyoloe(depth: float, width: float, size: int = 640) -> Net:  # noqa: C901 - its blocks
    """PP-YOLOE: CSPRepResNet with channel attention, CustomCSPPAN, ET-head; RepVGG blocks as one convolution."""
    net = Net()

    def c(channels: int) -> int:
        return max(round(channels * width), 1)

    def d(count: int) -> int:
        return max(round(count * depth), 1)

    def csp(x: Tensor, channels: int, count: int, *, has_attention: bool, has_spp: bool = False) -> Tensor:
        inner = (x.channels if has_attention else channels) // 2
        a, y = net.conv(x, inner), net.conv(x, inner)
        for at in range(count):
            z = net.conv(net.conv(y, inner, 3), inner, 3)
            y = net.add(y, z) if has_attention else z
            if has_spp and at == count // 2:
                y = net.conv(net.concat(y, net.pool(y), net.pool(y), net.pool(y)), inner)
        y = net.concat(a, y)
        if has_attention:
            net.conv(net.mean(y), y.channels, act="")
            y = net.add(y, Tensor(y.channels))
        return net.conv(y, channels)

    x = net.conv(net.conv(Tensor(3, size, size), c(64) // 2, 3, 2), c(64) // 2, 3)
    x = net.conv(x, c(64), 3)
    outputs = []
    for channels, count in ((128, 3), (256, 6), (512, 6), (1024, 3)):
        x = net.conv(x, (x.channels + c(channels)) // 2, 3, 2)
        x = csp(x, c(channels), d(count), has_attention=True)
        outputs.append(x)
    p3, p4, p5 = outputs[1:]
    n5 = csp(p5, c(768), d(3), has_attention=False, has_spp=True)
    n4 = csp(net.concat(net.up(net.conv(n5, c(384))), p4), c(384), d(3), has_attention=False)
    o3 = csp(net.concat(net.up(net.conv(n4, c(192))), p3), c(192), d(3), has_attention=False)
    o4 = csp(net.concat(net.conv(o3, c(192), 3, 2), n4), c(384), d(3), has_attention=False)
    o5 = csp(net.concat(net.conv(o4, c(384), 3, 2), n5), c(768), d(3), has_attention=False)
    for x in (o3, o4, o5):
        for outs in (COCO, 68):
            net.conv(net.mean(x), x.channels, act="")
            y = net.conv(net.add(x, Tensor(x.channels)), x.channels)
            y = net.conv(y, outs, 3, act="")
            if outs == COCO:
                net.pointwise(y)
    return net
