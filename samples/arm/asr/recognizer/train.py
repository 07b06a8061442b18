"""Train the acoustic model of `hbrt run asr`, a small TDNN-F, on synthesized digits.

    python -m recognizer.train [DIRECTORY]     (in samples/arm/asr)

Forty synthetic voices say 20 utterances of five digits each, in noise; the sound of each frame is known from the
synthesis. Takes a few minutes on one CPU; the seed is fixed, and the same machine produces the same file each time.

tdnnf.npz is written next to this script, or into DIRECTORY: weights as float16, which the network loads as float32.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recognizer import (
    BANDS,
    PHONE_NAMES,
    TRAINING_VOICES,
    filter_banks,
    load_network,
    ranges_of,
    rows_of,
    utterances,
)

SEED = 7
DIM, BOTTLENECK, STRIDES = 256, 64, (1, 3, 3)
EACH, FRAMES, BATCH, STEPS, RATE = 20, 64, 16, 1500, 2e-3
BYPASS, EPSILON = np.float32(0.66), np.float32(1e-5)
CONTEXT = sum(STRIDES)
Floats = NDArray[np.float32]
Weights = dict[str, Floats]


def main() -> int:
    """Write the weights, and print how many frames of the last batches are right."""
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
    data = []
    for utterance in utterances(TRAINING_VOICES, EACH):
        banks = filter_banks(utterance.samples)
        rows = rows_of(banks, CONTEXT)
        data.append((rows, rows[:, : 3 * BANDS], utterance.sounds[1 : 1 + len(banks)]))
    counts = np.bincount(np.concatenate([labels for *_, labels in data]), minlength=len(PHONE_NAMES))
    print(f"{len(data)} utterances, {counts.sum()} frames")
    weights, averages = train([(x, labels) for _, x, labels in data])
    stored: dict[str, Any] = {"strides": np.array(STRIDES), "priors": np.log(counts / counts.sum()).astype(np.float32)}
    stored |= weights
    for name, (mean, variance) in averages.items():
        scale = 1 / np.sqrt(variance + EPSILON)
        stored |= {f"{name}.scale": scale[None], f"{name}.offset": (-mean * scale)[None]}
    kept = {"strides", "priors"}
    stored = {name: value if name in kept else value.astype(np.float16) for name, value in stored.items()}
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "tdnnf.npz"
    np.savez_compressed(file, **stored)
    ranges = ranges_of(load_network(file), (padded for padded, _, _ in data[::10]))
    stored |= {f"{name}.range": np.float32(width) for name, width in ranges.items()}
    np.savez_compressed(file, **stored)
    print(f"{file}: {file.stat().st_size / 1024:.0f} KiB")
    return 0


def initial(random: np.random.Generator) -> Weights:
    """He initialization; the narrow matrices have orthogonal columns."""

    def normal(rows: int, columns: int) -> Floats:
        return random.normal(0, (2 / rows) ** 0.5, (rows, columns)).astype(np.float32)

    weights = {"input.matrix": normal(3 * BANDS, DIM), "input.bias": np.zeros((1, DIM), np.float32)}
    for layer in range(1, len(STRIDES) + 1):
        weights[f"layer{layer}.linear"] = np.linalg.qr(normal(2 * DIM, BOTTLENECK))[0].astype(np.float32)
        weights[f"layer{layer}.affine"] = normal(2 * BOTTLENECK, DIM)
        weights[f"layer{layer}.bias"] = np.zeros((1, DIM), np.float32)
    sounds = len(PHONE_NAMES)
    return weights | {"output.matrix": normal(DIM, sounds), "output.bias": np.zeros((1, sounds), np.float32)}


def train(data: list[tuple[Floats, NDArray[np.int64]]]) -> tuple[Weights, dict[str, tuple[Floats, Floats]]]:
    """Train by Adam on the cross entropy of frames, with cosine decay; returns weights, and means and variances."""
    random = np.random.default_rng(SEED)
    weights = initial(random)
    first = {name: np.zeros_like(value) for name, value in weights.items()}
    second = {name: np.zeros_like(value) for name, value in weights.items()}
    averages: dict[str, tuple[Floats, Floats]] = {}
    right = 0.0
    for step in range(1, STEPS + 1):
        x, labels = batch(data, random)
        logits, kept = forward(weights, x)
        right += (float((logits.argmax(-1) == labels).mean()) - right) / min(step, 50)
        for name, (mean, variance) in kept["statistics"].items():
            before = averages.get(name, (mean, variance))
            averages[name] = (before[0] * 0.98 + mean * 0.02, before[1] * 0.98 + variance * 0.02)
        rate = RATE * 0.5 * (1 + np.cos(np.pi * step / STEPS))
        for name, gradient in gradients(weights, x, labels, logits, kept).items():
            first[name] = 0.9 * first[name] + 0.1 * gradient
            second[name] = 0.999 * second[name] + 0.001 * gradient**2
            mean, variance = first[name] / (1 - 0.9**step), second[name] / (1 - 0.999**step)
            weights[name] = (weights[name] - rate * mean / (np.sqrt(variance) + 1e-8)).astype(np.float32)
        if step % 4 == 0:
            for layer in range(1, len(STRIDES) + 1):
                weights[f"layer{layer}.linear"] = more_orthogonal(weights[f"layer{layer}.linear"])
        if step % 250 == 0:
            print(f"step {step}: {right:.1%} of the frames are right")
    return weights, averages


def more_orthogonal(matrix: Floats) -> Floats:
    """A step that makes the columns more nearly orthogonal and equally long, whatever their length."""
    product = matrix.T @ matrix
    scale = np.trace(product @ product) / np.trace(product)
    closer: Floats = matrix - np.float32(0.5 / scale) * matrix @ (
        product - scale * np.eye(len(product), dtype=np.float32)
    )
    return closer


def batch(
    data: list[tuple[Floats, NDArray[np.int64]]], random: np.random.Generator
) -> tuple[Floats, NDArray[np.int64]]:
    """(BATCH, FRAMES + 2 CONTEXT, inputs) pieces of utterances, and (BATCH, FRAMES) sounds."""
    rows, sounds = [], []
    for index in random.integers(0, len(data), BATCH):
        x, labels = data[index]
        at = int(random.integers(0, len(labels) - FRAMES + 1))
        rows.append(x[at : at + FRAMES + 2 * CONTEXT])
        sounds.append(labels[at : at + FRAMES])
    return np.stack(rows), np.stack(sounds)


def pairs(x: Floats, stride: int) -> Floats:
    """Each row next to the one ``stride`` rows later."""
    return np.concatenate([x[:, :-stride], x[:, stride:]], -1)


def unpaired(gradient: Floats, stride: int) -> Floats:
    """The backward pass of ``pairs``."""
    left, right = np.split(gradient, 2, -1)
    found = np.zeros((left.shape[0], left.shape[1] + stride, left.shape[2]), np.float32)
    found[:, :-stride] += left
    found[:, stride:] += right
    return found


def normalized(z: Floats, name: str, kept: dict[str, Any]) -> Floats:
    """ReLU, normalized to mean 0 and variance 1 over the batch."""
    r = np.maximum(z, 0)
    mean, variance = r.mean((0, 1)), r.var((0, 1))
    y: Floats = (r - mean) / np.sqrt(variance + EPSILON)
    kept["statistics"][name], kept[name] = (mean, variance), (z > 0, y)
    return y


def normalized_back(gradient: Floats, name: str, kept: dict[str, Any]) -> Floats:
    """The backward pass of ``normalized``."""
    is_positive, y = kept[name]
    _, variance = kept["statistics"][name]
    inner = gradient - gradient.mean((0, 1)) - y * (gradient * y).mean((0, 1))
    back: Floats = inner / np.sqrt(variance + EPSILON) * is_positive
    return back


def forward(weights: Weights, x: Floats) -> tuple[Floats, dict[str, Any]]:
    """Logits (BATCH, FRAMES, sounds), and what the backward pass needs."""
    kept: dict[str, Any] = {"statistics": {}}
    y = normalized(x @ weights["input.matrix"] + weights["input.bias"], "input", kept)
    for layer, stride in enumerate(STRIDES, 1):
        name = f"layer{layer}"
        wide = pairs(y, stride)
        narrow = pairs(wide @ weights[f"{name}.linear"], stride)
        out = normalized(narrow @ weights[f"{name}.affine"] + weights[f"{name}.bias"], name, kept)
        kept[f"{name}.in"] = (wide, narrow)
        y = out + BYPASS * y[:, stride:-stride]
    kept["last"] = y
    return y @ weights["output.matrix"] + weights["output.bias"], kept


def gradients(weights: Weights, x: Floats, labels: NDArray[np.int64], logits: Floats, kept: dict[str, Any]) -> Weights:
    """Derivative of the mean cross entropy with respect to each weight."""

    def by_weight(inputs: Floats, gradient: Floats) -> Floats:
        found: Floats = inputs.reshape(-1, inputs.shape[-1]).T @ gradient.reshape(-1, gradient.shape[-1])
        return found

    d = np.exp(logits - logits.max(-1, keepdims=True))
    d /= d.sum(-1, keepdims=True)
    np.put_along_axis(d, labels[..., None], np.take_along_axis(d, labels[..., None], -1) - 1, -1)
    d /= labels.size
    found = {"output.matrix": by_weight(kept["last"], d), "output.bias": d.sum((0, 1))[None]}
    d = d @ weights["output.matrix"].T
    for layer in range(len(STRIDES), 0, -1):
        name, stride = f"layer{layer}", STRIDES[layer - 1]
        wide, narrow = kept[f"{name}.in"]
        d_z = normalized_back(d, name, kept)
        found[f"{name}.affine"], found[f"{name}.bias"] = by_weight(narrow, d_z), d_z.sum((0, 1))[None]
        d_narrow = unpaired(d_z @ weights[f"{name}.affine"].T, stride)
        found[f"{name}.linear"] = by_weight(wide, d_narrow)
        d_in = unpaired(d_narrow @ weights[f"{name}.linear"].T, stride)
        d_in[:, stride:-stride] += BYPASS * d
        d = d_in
    d_z = normalized_back(d, "input", kept)
    return found | {"input.matrix": by_weight(x, d_z), "input.bias": d_z.sum((0, 1))[None]}


if __name__ == "__main__":
    sys.exit(main())
