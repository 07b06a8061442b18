"""The published networks by name, each with a builder of its layers."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Final

from hbrt.accelerators import classifiers, transformers, yolo, yolo_later
from hbrt.accelerators.layer import Layer, Net

_V5: Final = {"n": (0.33, 0.25), "s": (0.33, 0.5), "m": (0.67, 0.75), "l": (1.0, 1.0), "x": (1.33, 1.25)}
_V8: Final = {
    "n": (0.33, 0.25, 1024), "s": (0.33, 0.5, 1024), "m": (0.67, 0.75, 768), "l": (1.0, 1.0, 512), "x": (1.0, 1.25, 512)
}  # fmt: skip
_V11: Final = {
    "n": (0.5, 0.25, 1024), "s": (0.5, 0.5, 1024), "m": (0.5, 1.0, 512), "l": (1.0, 1.0, 512), "x": (1.0, 1.5, 512)
}  # fmt: skip


def _of_yolo() -> dict[str, Callable[[], Net]]:
    found: dict[str, Callable[[], Net]] = {"yolov5s_relu": partial(yolo.yolov5, *_V5["s"], act="relu")}
    for scale, (depth, width) in _V5.items():
        found[f"yolov5{scale}"] = partial(yolo.yolov5, depth, width)
        found[f"yolov5{scale}u"] = partial(yolo.yolov5, depth, width, head="v8")
        found[f"yolov5{scale}-seg"] = partial(yolo.yolov5, depth, width, head="seg")
    for head in ("detect", "seg", "pose", "obb", "cls"):
        size, suffix = (224 if head == "cls" else 640), "" if head == "detect" else f"-{head}"
        for scale, (depth, width, most) in _V8.items():
            found[f"yolov8{scale}{suffix}"] = partial(yolo.yolov8, depth, width, most, head=head, size=size)
        for scale, (depth, width, most) in _V11.items():
            found[f"yolo11{scale}{suffix}"] = partial(
                yolo.yolo11, depth, width, most, is_large=scale in "mlx", head=head, size=size
            )
    found |= {f"yolov9{scale}": partial(yolo_later.yolov9, scale) for scale in "tsmc"}
    found |= {f"yolo12{scale}": partial(yolo_later.yolo12, scale) for scale in "nsmlx"}
    found["yolov9c-seg"] = partial(yolo_later.yolov9, "c", head="seg")
    found |= {f"yolov10{scale}": partial(yolo.yolov10, scale) for scale in "nsmblx"}
    found |= {f"yolov6{scale}": partial(yolo.yolov6, scale) for scale in "nsm"}
    found |= {f"yolox_{scale}": partial(yolo.yolox, *_V5[scale]) for scale in "sm"}
    found |= {f"ppyoloe_{scale}": partial(yolo.ppyoloe, *_V5[scale]) for scale in "sm"}
    return found | {"yolov7-tiny": yolo.yolov7_tiny, "yolov7": yolo.yolov7}


def _of_classifiers() -> dict[str, Callable[[], Net]]:
    c = classifiers
    found: dict[str, Callable[[], Net]] = {
        "resnet18": partial(c.resnet, (2, 2, 2, 2), has_bottleneck=False),
        "resnet50": partial(c.resnet, (3, 4, 6, 3), has_bottleneck=True),
        "resnet101": partial(c.resnet, (3, 4, 23, 3), has_bottleneck=True),
        "wide_resnet50_2": partial(c.resnet, (3, 4, 6, 3), has_bottleneck=True, base=128),
        "resnext101_32x8d": partial(c.resnet, (3, 4, 23, 3), has_bottleneck=True, groups=32, base=8),
        "resnext50_32x4d": partial(c.resnet, (3, 4, 6, 3), has_bottleneck=True, groups=32, base=4),
        "mobilenetv1": c.mobilenet_v1,
        "mobilenetv2": c.mobilenet_v2,
        "mobilenetv3_large_100": c.mobilenet_v3,
        "mobilenetv4_conv_small": c.mobilenet_v4_small,
        "mobilenetv4_conv_medium": c.mobilenet_v4_medium,
        "googlenet": c.googlenet,
        "squeezenet1_1": c.squeezenet,
        "inception_v3": c.inception_v3,
        "densenet121": partial(c.densenet, (6, 12, 24, 16)),
        "regnet_x_3_2gf": partial(c.regnet, (96, 192, 432, 1008), (2, 6, 15, 2), 48),
        "quicksrnet_small": partial(c.quicksrnet, 32, 2),
        "quicksrnet_medium": partial(c.quicksrnet, 32, 5),
        "quicksrnet_large": partial(c.quicksrnet, 64, 11),
        "lprnet": c.lprnet,
        "clip_text": partial(transformers.clip_text, 20),
        "clip_images": transformers.clip_images,
        "retinaface_mobile320": partial(c.retinaface, is_mobile=True),
        "retinaface_resnet50_320": partial(c.retinaface, is_mobile=False),
        "deeplabv3-mobilenetv2": c.deeplab_mobilenet,
        "efficientnet_b2": partial(c.efficientnet, 1.1, 1.2),
        "efficientnet_b3": partial(c.efficientnet, 1.2, 1.4),
        "efficientnet_b4": partial(c.efficientnet, 1.4, 1.8),
        "repvgg_a0": partial(c.repvgg, (2, 4, 14, 1), 0.75, 2.5),
        "repvgg_a1": partial(c.repvgg, (2, 4, 14, 1), 1, 2.5),
        "repvgg_a2": partial(c.repvgg, (2, 4, 14, 1), 1.5, 2.75),
        "repvgg_b0": partial(c.repvgg, (4, 6, 16, 1), 1, 2.5),
        "repvgg_b1g2": partial(c.repvgg, (4, 6, 16, 1), 2, 4, 2),
        "repvgg_b1g4": partial(c.repvgg, (4, 6, 16, 1), 2, 4, 4),
        "mobileone_s0": partial(c.mobileone, (0.75, 1, 1, 2)),
        "mobileone_s1": partial(c.mobileone, (1.5, 1.5, 2, 2.5)),
        "mobileone_s2": partial(c.mobileone, (1.5, 2, 2.5, 4)),
        "mobileone_s3": partial(c.mobileone, (2, 2.5, 3, 4)),
        "mobileone_s4": partial(c.mobileone, (3, 3.5, 3.5, 4), has_attention=True),
        "fasternet_t0": partial(c.fasternet, 40, (1, 2, 8, 2), "gelu"),
        "fasternet_t1": partial(c.fasternet, 64, (1, 2, 8, 2), "gelu"),
        "fasternet_t2": partial(c.fasternet, 96, (1, 2, 8, 2), "relu"),
        "fasternet_s": partial(c.fasternet, 128, (1, 2, 13, 2), "relu"),
    }
    for name, depths, width in (
        ("atto", (2, 2, 6, 2), 40), ("femto", (2, 2, 6, 2), 48), ("pico", (2, 2, 6, 2), 64), ("nano", (2, 2, 8, 2), 80),
    ):  # fmt: skip
        found[f"convnext_{name}"] = partial(c.convnext, depths, [width << at for at in range(4)])
    return found


NETWORKS: Final[dict[str, Callable[[], Net]]] = _of_yolo() | _of_classifiers()


@cache
def layers_of(name: str) -> tuple[Layer, ...]:
    """Return the layers of a published network.

    Raises:
        KeyError: no network has that name.
    """
    return tuple(NETWORKS[name]().layers)


def family_of(name: str) -> str:
    """Return the family of a published network: its name without the size, such as yolov8 or resnet."""
    found = re.match(r"yolo(v?\d+|x)|[a-z]+", name)
    return found[0] if found else name
