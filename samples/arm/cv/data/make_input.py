"""Draw the picture that the CV samples use by default: a street, 480 x 320, with something for every op.

    python make_input.py

Writes input.png next to itself. Seeded: the same picture every time.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT, HORIZON = 480, 320, 170
PICTURE = Path(__file__).with_name("input.png")

HOUSES = ((18, 66, 92, (86, 104, 158)), (122, 108, 66, (150, 132, 112)), (300, 92, 84, (104, 138, 172)))
"""Left, top, width and color of each."""


def draw() -> NDArray[np.uint8]:
    """The picture, (320, 480, 3) uint8, BGR."""
    random = np.random.default_rng(0)
    picture: Any = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    sky = np.linspace(0, 1, HORIZON)[:, None, None]
    picture[:HORIZON] = (1 - sky) * (196, 140, 70) + sky * (214, 208, 236)
    cv2.circle(picture, (392, 62), 26, (120, 214, 252), -1, cv2.LINE_AA)
    for shift, color in ((0, (132, 110, 96)), (60, (112, 92, 74))):
        x = np.arange(WIDTH)
        y = HORIZON - 34 - 16 * np.sin((x + shift) / 47) - 9 * np.sin((x + shift) / 19) + shift / 4
        hills = np.column_stack([np.r_[0, x, WIDTH - 1], np.r_[HORIZON, y, HORIZON]]).astype(np.int32)
        cv2.fillPoly(picture, [hills], color, cv2.LINE_AA)

    cv2.rectangle(picture, (0, HORIZON), (WIDTH, HEIGHT), (74, 118, 84), -1)
    grass = picture[HORIZON:].astype(int) + random.integers(-14, 15, (HEIGHT - HORIZON, WIDTH, 1))
    picture[HORIZON:] = np.clip(grass, 0, 255)
    cv2.fillPoly(
        picture, [np.array([[215, HORIZON], [265, HORIZON], [430, HEIGHT], [50, HEIGHT]])], (92, 88, 86), cv2.LINE_AA
    )
    for near, far in ((318, 282), (262, 238), (222, 206), (196, 186)):
        half_near, half_far = (near - HORIZON) // 22 + 1, (far - HORIZON) // 22 + 1
        stripe = np.array(
            [[240 - half_far, far], [240 + half_far, far], [240 + half_near, near], [240 - half_near, near]]
        )
        cv2.fillPoly(picture, [stripe], (228, 232, 236), cv2.LINE_AA)

    for left, top, width, color in (
        (18, 66, 92, (86, 104, 158)),
        (122, 108, 66, (150, 132, 112)),
        (300, 92, 84, (104, 138, 172)),
    ):
        bottom = HORIZON + 26
        cv2.rectangle(picture, (left, top), (left + width, bottom), color, -1)
        cv2.rectangle(picture, (left, top), (left + width, bottom), (52, 46, 44), 2)
        for above in range(top + 10, bottom - 22, 20):
            for beside in range(left + 9, left + width - 12, 18):
                lit = random.random() < 0.45
                corner = (beside + 9, above + 11)
                cv2.rectangle(picture, (beside, above), corner, (150, 226, 250) if lit else (70, 60, 58), -1)

    # A test chart: stripes, lines of growing width, and a word.
    chart = (np.indices((48, 48)).sum(axis=0) // 6 % 2 * 215 + 20).astype(np.uint8)
    picture[238:286, 396:444] = chart[..., None]
    cv2.rectangle(picture, (394, 236), (445, 287), (30, 30, 30), 2)
    for index, width in enumerate((1, 2, 3, 5)):
        cv2.line(picture, (26 + index * 14, 232), (36 + index * 14, 288), (40, 40, 210), width, cv2.LINE_AA)
    cv2.putText(picture, "hbrt 0x800", (86, 52), cv2.FONT_HERSHEY_SIMPLEX, 1.0, (70, 34, 24), 2, cv2.LINE_AA)

    # Salt and pepper in one corner, for the ops that remove them.
    noisy = picture[200:310, 4:90]
    noisy[random.random(noisy.shape[:2]) < 0.03] = 255
    noisy[random.random(noisy.shape[:2]) < 0.03] = 0
    result: NDArray[np.uint8] = picture
    return result


if __name__ == "__main__":
    sys.exit(0 if cv2.imwrite(str(PICTURE), draw(), [cv2.IMWRITE_PNG_COMPRESSION, 9]) else 1)
