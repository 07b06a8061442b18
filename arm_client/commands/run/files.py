"""Files passed to ``hbrt run``: an error in one is reported before any sample runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from arm_client.commands.run.pictures import is_picture, need_opencv, take_pictures
from arm_client.commands.run.samples import arguments_of

DEFAULT_DIRECTORY = Path("output")
_Command = TypeVar("_Command", bound="Callable[..., Any] | click.Command")
_FILES = {
    "points_file": ("--points", "point-cloud"),
    "input_file": ("--input", "picture"),
    "wav_file": ("--wav", "speech"),
    "model_file": ("--model", "model"),
}


def file_option(*names: str, help: str) -> Callable[[_Command], _Command]:
    """An option that names an existing regular file, which is read completely, twice."""

    def check(_ctx: click.Context, _param: click.Parameter, value: Path | None) -> Path | None:
        if value is not None and not value.is_file():
            raise click.BadParameter(f"'{value}' is not a regular file; name one.")
        return value

    kind = click.Path(exists=True, dir_okay=False, path_type=Path)
    return click.option(*names, metavar="FILE", type=kind, callback=check, help=help)


def default_output(samples: dict[str, Path]) -> Path | None:
    """The default directory for results; None if no sample writes a file."""
    return DEFAULT_DIRECTORY if any("output_dir" in arguments_of(file) for file in samples.values()) else None


def options_of(samples: dict[str, Path], files: dict[str, Path | None], output: Path | None) -> dict[str, str]:
    """The arguments of the samples' ``main()``, as far as they take them.

    Args:
        samples: The samples to run.
        files: The user's files, by argument.
        output: Directory for results; None for no output files.

    Raises:
        click.UsageError: a point cloud or a picture, and no sample that takes one; a file of another format, or for
            samples that read different ones.
        PictureError: OpenCV is not installed.
    """
    options = {} if output is None else {"output_dir": str(output.absolute())}
    for argument, file in files.items():
        if file is None:
            continue
        if not any(argument in arguments_of(sample) for sample in samples.values()):
            option, kind = _FILES[argument]
            raise click.UsageError(f"{option} {file} is for {kind} samples; {', '.join(samples)} takes none.")
        options[argument] = str(file.absolute())
    if take_pictures(samples):
        need_opencv()
        if (picture := files["input_file"]) is not None and not is_picture(picture):
            raise click.UsageError(f"--input {picture} is not a picture that OpenCV can read.")
    if (points := files["points_file"]) is not None:
        _check_points(points, samples)
    return options


def _check_points(points: Path, samples: dict[str, Path]) -> None:
    """Read a point cloud as the sample that takes it does."""
    from arm_client.errors import CallerError
    from arm_client.nn import CENTERPOINT, POINTPILLARS, read_kitti, read_nuscenes

    known = {"centerpoint": (CENTERPOINT, read_nuscenes), "pointpillars": (POINTPILLARS, read_kitti)}
    name, *others = [name for name in known if name in samples]
    if others:
        raise click.UsageError(
            f"--points {points} is for one sample, and {name} and {others[0]} read different files: name one, as in: "
            f"hbrt run nn {name} --points FILE."
        )
    model, read = known[name]
    try:
        model.need_sweep(read(points).shape)
    except CallerError as error:
        raise click.UsageError(f"--points {points}, for {name}: {error.text}") from None


def prepare_output(directory: Path) -> None:
    """Make the directory of the results before a sample runs.

    Raises:
        click.UsageError: another file has its name. OSError: it cannot be made or written to.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise click.UsageError(
            f"Cannot write results to {directory}: it, or a part of its path, is not a directory. Name another with "
            "--output."
        ) from None
    except OSError as error:
        raise _cannot_write(directory, error.strerror or str(error)) from None
    if not os.access(directory, os.W_OK | os.X_OK):
        raise _cannot_write(directory, "Permission denied")


def _cannot_write(directory: Path, why: str) -> OSError:
    return OSError(f"Results cannot be written into {directory}: {why}. Name another directory with --output.")
