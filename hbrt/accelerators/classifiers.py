"""Layers of classifiers and of networks built on them, from their public descriptions."""

from __future__ import annotations

from collections.abc import Sequence

from hbrt.accelerators.layer import Net, Tensor


def _end(net: Net, x: Tensor, classes: int = 1000) -> Net:
    net.linear(net.mean(x), classes)
    return net


def resnet(counts: Sequence[int], *, has_bottleneck: bool, groups: int = 1, base: int = 64, size: int = 224) -> Net:
    """ResNet and ResNeXt."""
    net = Net()
    resnet_stages(net, Tensor(3, size, size), counts, has_bottleneck=has_bottleneck, groups=groups, base=base)
    return _end(net, net.layers[-1].output)


def resnet_stages(
    net: Net, image: Tensor, counts: Sequence[int], *, has_bottleneck: bool, groups: int = 1, base: int = 64
) -> list[Tensor]:
    """The four stages of a ResNet; returns their outputs."""
    x = net.pool(net.conv(image, 64, 7, 2, act="relu"), 2)
    outputs = []
    for stage, count in enumerate(counts):
        inner, out = (base << stage) * groups, 64 << stage
        out *= 4 if has_bottleneck else 1
        for at in range(count):
            stride = 2 if at == 0 and stage else 1
            before = x
            if has_bottleneck:
                y = net.conv(x, inner, act="relu")
                y = net.conv(y, inner, 3, stride, groups=groups, act="relu")
                y = net.conv(y, out, act="")
            else:
                y = net.conv(net.conv(x, out, 3, stride, act="relu"), out, 3, act="")
            if before.channels != out or stride == 2:
                before = net.conv(before, out, 1, stride, act="")
            x = net.add(y, before)
        outputs.append(x)
    return outputs


def _inverted(net: Net, x: Tensor, channels: int, ratio: float, stride: int, kernel: int = 3) -> Tensor:
    inner = int(x.channels * ratio)
    y = net.conv(x, inner, act="relu") if ratio != 1 else x
    y = net.conv(net.conv(y, inner, kernel, stride, groups=inner, act="relu"), channels, act="")
    return net.add(x, y) if stride == 1 and x.channels == channels else y


def mobilenet_v2_stages(net: Net, image: Tensor) -> list[Tensor]:
    """The blocks of MobileNetV2; returns their outputs."""
    x = net.conv(image, 32, 3, 2, act="relu")
    outputs = [x]
    for ratio, channels, count, stride in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ):  # fmt: skip
        for at in range(count):
            x = _inverted(net, x, channels, ratio, stride if at == 0 else 1)
        outputs.append(x)
    return outputs


def mobilenet_v2(size: int = 224) -> Net:
    """MobileNetV2 at width 1."""
    net = Net()
    x = mobilenet_v2_stages(net, Tensor(3, size, size))[-1]
    return _end(net, net.conv(x, 1280, act="relu"))


def mobilenet_v1_stages(net: Net, image: Tensor, width: float = 1.0) -> list[Tensor]:
    """The blocks of MobileNetV1; returns the ones before each stride, and the last."""
    x = net.conv(image, int(32 * width), 3, 2, act="relu")
    outputs = []
    for channels, stride in (
        (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (512, 1), (512, 1), (512, 1), (512, 1),
        (1024, 2), (1024, 1),
    ):  # fmt: skip
        if stride == 2:
            outputs.append(x)
        x = net.conv(x, x.channels, 3, stride, groups=x.channels, act="relu")
        x = net.conv(x, int(channels * width), act="relu")
    return [*outputs, x]


def mobilenet_v1(size: int = 224) -> Net:
    """MobileNetV1 at width 1."""
    net = Net()
    return _end(net, mobilenet_v1_stages(net, Tensor(3, size, size))[-1])


def mobilenet_v3(size: int = 224) -> Net:
    """MobileNetV3 large at width 1."""
    net, hard = Net(), "hardswish"
    x = net.conv(Tensor(3, size, size), 16, 3, 2, act=hard)
    for kernel, inner, channels, has_attention, act, stride in (
        (3, 16, 16, False, "relu", 1), (3, 64, 24, False, "relu", 2), (3, 72, 24, False, "relu", 1),
        (5, 72, 40, True, "relu", 2), (5, 120, 40, True, "relu", 1), (5, 120, 40, True, "relu", 1),
        (3, 240, 80, False, hard, 2), (3, 200, 80, False, hard, 1), (3, 184, 80, False, hard, 1),
        (3, 184, 80, False, hard, 1), (3, 480, 112, True, hard, 1), (3, 672, 112, True, hard, 1),
        (5, 672, 160, True, hard, 2), (5, 960, 160, True, hard, 1), (5, 960, 160, True, hard, 1),
    ):  # fmt: skip
        y = net.conv(x, inner, act=act) if inner != x.channels else x
        y = net.conv(y, inner, kernel, stride, groups=inner, act=act)
        if has_attention:
            squeezed = net.conv(net.mean(y), -(-inner // 32) * 8, act="relu")
            y = net.add(y, net.conv(squeezed, inner, act="hardsigmoid"))
        y = net.conv(y, channels, act="")
        x = net.add(x, y) if stride == 1 and x.channels == channels else y
    return _two_at_end(net, x, hard)


def _two_at_end(net: Net, x: Tensor, act: str) -> Net:
    x = net.mean(net.conv(x, 960, act=act))
    net.linear(net.conv(x, 1280, act=act), 1000)
    return net


def _universal(net: Net, x: Tensor, *blocks: tuple[int, int, int, int, int]) -> Tensor:
    """Blocks of MobileNetV4: channels, kernels of two depthwise convolutions (0: none), stride, ratio."""
    for channels, first, middle, stride, ratio in blocks:
        y = net.conv(x, x.channels, first, 1 if middle else stride, groups=x.channels, act="") if first else x
        y = net.conv(y, ratio * x.channels, act="relu")
        if middle:
            y = net.conv(y, y.channels, middle, stride, groups=y.channels, act="relu")
        y = net.conv(y, channels, act="")
        x = net.add(x, y) if stride == 1 and x.channels == channels else y
    return x


def mobilenet_v4_small(size: int = 224) -> Net:
    """MobileNetV4 small, convolutions only."""
    net = Net()
    x = Tensor(3, size, size)
    for channels, kernel, stride in ((32, 3, 2), (32, 3, 2), (32, 1, 1), (96, 3, 2), (64, 1, 1)):
        x = net.conv(x, channels, kernel, stride, act="relu")
    blocks = (
        (96, 5, 5, 2, 3), *((96, 0, 3, 1, 2),) * 4, (96, 3, 0, 1, 4), (128, 3, 3, 2, 6), (128, 5, 5, 1, 4),
        (128, 0, 5, 1, 4), (128, 0, 5, 1, 3), (128, 0, 3, 1, 4), (128, 0, 3, 1, 4),
    )  # fmt: skip
    return _two_at_end(net, _universal(net, x, *blocks), "relu")


def mobilenet_v4_medium(size: int = 224) -> Net:
    """MobileNetV4 medium, convolutions only."""
    net = Net()
    x = net.conv(Tensor(3, size, size), 32, 3, 2, act="relu")
    x = net.conv(net.conv(x, 128, 3, 2, act="relu"), 48, act="")
    blocks = (
        (80, 3, 5, 2, 4), (80, 3, 3, 1, 2), (160, 3, 5, 2, 6), (160, 3, 3, 1, 4), (160, 3, 3, 1, 4), (160, 3, 5, 1, 4),
        (160, 3, 3, 1, 4), (160, 3, 0, 1, 4), (160, 0, 0, 1, 2), (160, 3, 0, 1, 4), (256, 5, 5, 2, 6),
        (256, 5, 5, 1, 4), (256, 3, 5, 1, 4), (256, 3, 5, 1, 4), (256, 0, 0, 1, 4), (256, 3, 0, 1, 4),
        (256, 3, 5, 1, 2), (256, 5, 5, 1, 4), (256, 0, 0, 1, 4), (256, 0, 0, 1, 4), (256, 5, 0, 1, 2),
    )  # fmt: skip
    return _two_at_end(net, _universal(net, x, *blocks), "relu")


def repvgg(counts: Sequence[int], narrow: float, wide: float, groups: int = 1) -> Net:
    """RepVGG as deployed: one 3 x 3 convolution per block; with ``groups`` every second one is grouped."""
    net = Net()
    x = net.conv(Tensor(3, 224, 224), min(64, int(64 * narrow)), 3, 2, act="relu")
    number = 1
    for count, channels in zip(counts, (64 * narrow, 128 * narrow, 256 * narrow, 512 * wide), strict=True):
        for at in range(count):
            x = net.conv(x, int(channels), 3, 2 if at == 0 else 1, groups=groups if number % 2 == 0 else 1, act="relu")
            number += 1
    return _end(net, x)


def mobileone(widths: Sequence[float], *, has_attention: bool = False) -> Net:
    """MobileOne as deployed: a depthwise and a pointwise convolution per block."""
    net = Net()
    x = net.conv(Tensor(3, 224, 224), min(64, int(64 * widths[0])), 3, 2, act="relu")
    for count, channels, width in zip((2, 8, 10, 1), (64, 128, 256, 512), widths, strict=True):
        for at in range(count):
            x = net.conv(x, x.channels, 3, 2 if at == 0 else 1, groups=x.channels, act="relu")
            x = net.conv(x, int(channels * width), act="relu")
            if has_attention and (channels == 512 or (channels == 256 and at >= count // 2)):
                net.conv(net.conv(net.mean(x), x.channels // 16, act="relu"), x.channels, act="")
                net.add(x, Tensor(x.channels))
    return _end(net, x)


def googlenet() -> Net:
    """GoogLeNet."""
    net = Net()
    x = net.pool(net.conv(Tensor(3, 224, 224), 64, 7, 2, act="relu"), 2)
    x = net.pool(net.conv(net.conv(x, 64, act="relu"), 192, 3, act="relu"), 2)
    for sizes in (
        (64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), (), (192, 96, 208, 16, 48, 64),
        (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64),
        (256, 160, 320, 32, 128, 128), (), (256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128),
    ):  # fmt: skip
        if not sizes:
            x = net.pool(x, 2)
            continue
        one, three_in, three, five_in, five, after_pool = sizes
        x = net.concat(
            net.conv(x, one, act="relu"),
            net.conv(net.conv(x, three_in, act="relu"), three, 3, act="relu"),
            net.conv(net.conv(x, five_in, act="relu"), five, 3, act="relu"),
            net.conv(net.pool(x), after_pool, act="relu"),
        )
    return _end(net, x)


def squeezenet() -> Net:
    """SqueezeNet 1.1."""
    net = Net()
    x = net.pool(net.conv(Tensor(3, 224, 224), 64, 3, 2, act="relu"), 2)
    for squeezed, wide, has_pool in (
        (16, 64, False), (16, 64, True), (32, 128, False), (32, 128, True), (48, 192, False), (48, 192, False),
        (64, 256, False), (64, 256, False),
    ):  # fmt: skip
        y = net.conv(x, squeezed, act="relu")
        x = net.concat(net.conv(y, wide, act="relu"), net.conv(y, wide, 3, act="relu"))
        x = net.pool(x, 2) if has_pool else x
    net.mean(net.conv(x, 1000, act="relu"))
    return net


def densenet(counts: Sequence[int], growth: int = 32) -> Net:
    """DenseNet: each layer reads all previous ones; a normalization before a convolution is a layer of its own."""
    net = Net()
    x = net.pool(net.conv(Tensor(3, 224, 224), 64, 7, 2, act="relu"), 2)
    for stage, count in enumerate(counts):
        for _ in range(count):
            y = net.conv(net.conv(net.move(x, output=x), 4 * growth, act="relu"), growth, 3, act="")
            x = net.concat(x, y)
        x = net.move(x, output=x)
        if stage < len(counts) - 1:
            x = net.pool(net.conv(x, x.channels // 2, act=""), 2)
    return _end(net, x)


def inception_v3(size: int = 200) -> Net:
    """Inception v3 without its auxiliary head; 200-pixel features are those of 224 without padding."""
    net = Net()

    def one(x: Tensor, channels: int, kernel: int = 1, stride: int = 1) -> Tensor:
        return net.conv(x, channels, kernel, stride, act="relu")

    def long(x: Tensor, channels: int, kernel: int = 7) -> Tensor:
        return net.sided(x, channels, kernel, act="relu")

    x = one(one(one(Tensor(3, size, size), 32, 3, 2), 32, 3), 64, 3)
    x = net.pool(one(one(net.pool(x, 2), 80), 192, 3), 2)
    for after_pool in (32, 64, 64):
        three = one(one(one(x, 64), 96, 3), 96, 3)
        x = net.concat(one(x, 64), one(one(x, 48), 64, 5), three, one(net.pool(x), after_pool))
    x = net.concat(one(x, 384, 3, 2), one(one(one(x, 64), 96, 3), 96, 3, 2), net.pool(x, 2))
    for inner in (128, 160, 160, 192):
        twice = one(x, inner)
        for channels in (inner, inner, inner, 192):
            twice = long(twice, channels)
        x = net.concat(one(x, 192), long(long(one(x, inner), inner), 192), twice, one(net.pool(x), 192))
    three = one(long(long(one(x, 192), 192), 192), 192, 3, 2)
    x = net.concat(one(one(x, 192), 320, 3, 2), three, net.pool(x, 2))
    for _ in range(2):
        y, z = one(x, 384), one(one(x, 448), 384, 3)
        sides = [long(side, 384, 3) for side in (y, y, z, z)]
        x = net.concat(one(x, 320), *sides, one(net.pool(x), 192))
    return _end(net, x)


def regnet(widths: Sequence[int], depths: Sequence[int], group: int) -> Net:
    """RegNet X: bottlenecks as wide inside as outside, in channel groups of the given width."""
    net = Net()
    x = net.conv(Tensor(3, 224, 224), 32, 3, 2, act="relu")
    for width, depth in zip(widths, depths, strict=True):
        for at in range(depth):
            stride = 2 if at == 0 else 1
            y = net.conv(net.conv(x, width, act="relu"), width, 3, stride, groups=width // group, act="relu")
            before = net.conv(x, width, 1, stride, act="") if at == 0 else x
            x = net.add(net.conv(y, width, act=""), before)
    return _end(net, x)


def quicksrnet(channels: int, depth: int, scale: int = 3, size: int = 128) -> Net:
    """QuickSRNet: convolutions of equal width, and depth-to-space at the end."""
    net = Net()
    x = net.conv(Tensor(3, size, size), channels, 3, act="relu")
    for _ in range(depth):
        x = net.conv(x, channels, 3, act="relu")
    x = net.conv(x, 3 * scale * scale, 3, act="clip")
    net.move(x, output=Tensor(3, scale * size, scale * size))
    return net


def convnext(depths: Sequence[int], dims: Sequence[int]) -> Net:
    """ConvNeXt."""
    net = Net()
    x = net.pointwise(net.conv(Tensor(3, 224, 224), dims[0], 4, 4, act=""))
    for stage, (depth, channels) in enumerate(zip(depths, dims, strict=True)):
        if stage:
            x = net.conv(net.pointwise(x), channels, 2, 2, act="")
        for _ in range(depth):
            y = net.pointwise(net.conv(x, channels, 7, groups=channels, act=""))
            x = net.add(x, net.conv(net.conv(y, 4 * channels, act="gelu"), channels, act=""))
    return _end(net, x)


def fasternet(channels: int, depths: Sequence[int], act: str) -> Net:
    """FasterNet: a 3 x 3 convolution on a quarter of the channels, then two pointwise ones."""
    net = Net()
    x = net.conv(Tensor(3, 224, 224), channels, 4, 4, act="")
    for stage, depth in enumerate(depths):
        if stage:
            x = net.conv(x, 2 * x.channels, 2, 2, act="")
        for _ in range(depth):
            part = net.conv(Tensor(x.channels // 4, x.height, x.width), x.channels // 4, 3, act="")
            y = net.concat(part, Tensor(x.channels - part.channels, x.height, x.width))
            x = net.add(x, net.conv(net.conv(y, 2 * x.channels, act=act), x.channels, act=""))
    return _end(net, net.conv(net.mean(x), 1280, act=act))


def efficientnet(width: float, depth: float, size: int = 224) -> Net:
    """EfficientNet without squeeze and excitation, with ReLU6."""
    net = Net()

    def c(channels: int) -> int:
        rounded = max(8, int(channels * width + 4) // 8 * 8)
        return rounded + 8 if rounded < 0.9 * channels * width else rounded

    x = net.conv(Tensor(3, size, size), 32, 3, 2, act="relu")
    stages = (
        (1, 3, 16, 1, 1), (6, 3, 24, 2, 2), (6, 5, 40, 2, 2), (6, 3, 80, 3, 2), (6, 5, 112, 3, 1), (6, 5, 192, 4, 2),
        (6, 3, 320, 1, 1),
    )  # fmt: skip
    for number, (ratio, kernel, channels, count, stride) in enumerate(stages):
        repeats = count if number in {0, len(stages) - 1} else -(-int(count * depth * 1000) // 1000)
        for at in range(repeats):
            x = _inverted(net, x, c(channels), ratio, stride if at == 0 else 1, kernel)
    return _end(net, net.conv(x, 1280, act="relu"))


def retinaface(*, is_mobile: bool, size: int = 320) -> Net:
    """RetinaFace on quarter-width MobileNet or on ResNet-50."""
    net, image = Net(), Tensor(3, size, size)
    if is_mobile:
        features = mobilenet_v1_stages(net, image, 0.25)[2:]
    else:
        features = resnet_stages(net, image, (3, 4, 6, 3), has_bottleneck=True)[1:]
    out = 64 if is_mobile else 256
    c3, c4, c5 = (net.conv(x, out, act="leaky") for x in features)
    c4 = net.conv(net.add(c4, net.up(c5)), out, 3, act="leaky")
    c3 = net.conv(net.add(c3, net.up(c4)), out, 3, act="leaky")
    for x in (c3, c4, c5):
        a = net.conv(x, out // 2, 3, act="")
        b = net.conv(x, out // 4, 3, act="leaky")
        y = net.concat(a, net.conv(b, out // 4, 3, act=""), net.conv(net.conv(b, out // 4, 3), out // 4, 3, act=""))
        for numbers in (8, 4, 20):
            net.conv(y, numbers, act="")
    return net


def deeplab_mobilenet(size: int = 513) -> Net:
    """DeepLabV3 on MobileNetV2 with output stride 8, including the large final resize."""
    net = Net()
    x = net.conv(Tensor(3, size, size), 32, 3, 2, act="relu")
    for ratio, channels, count, stride in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 1), (6, 96, 3, 1), (6, 160, 3, 1), (6, 320, 1, 1),
    ):  # fmt: skip
        for at in range(count):
            x = _inverted(net, x, channels, ratio, stride if at == 0 else 1)
    pooled = net.conv(net.mean(x), 256, act="relu")
    wide = net.move(pooled, output=Tensor(256, x.height, x.width))
    y = net.conv(net.concat(wide, net.conv(x, 256, act="relu")), 256, act="relu")
    y = net.conv(y, 21, act="")
    net.move(y, output=Tensor(21, size, size))
    return net


def lprnet(characters: int = 68) -> Net:
    """LPRNet, which reads license plates of 24 x 94 pixels: unpadded convolutions, four scales joined at the end."""
    net = Net()

    def small(x: Tensor, channels: int) -> Tensor:
        y = net.conv(x, channels // 4, act="relu")
        for _ in range(2):
            y = net.sided(y, channels // 4, 3, act="relu")
        return net.conv(y, channels, act="relu")

    first = net.conv(Tensor(3, 22, 92), 64, 3, act="relu")
    second = small(net.move(first, output=Tensor(64, 20, 90)), 128)
    third = small(small(net.move(second, output=Tensor(64, 18, 44)), 256), 256)
    net.move(third, output=Tensor(64, 16, 21))
    rows = net.sided(Tensor(64, 16, 18), 256, 4, act="relu")
    last = net.sided(rows._replace(height=4), characters, 13, act="relu")
    scales = []
    for x in (first, second, third, last):
        pooled = net.move(x, output=Tensor(x.channels, last.height, last.width))
        net.mean(net.pointwise(pooled))
        scales.append(net.pointwise(pooled))
    net.mean(net.conv(net.concat(*scales), characters, act=""))
    return net
