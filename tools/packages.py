"""Where the packages of the tree are: those of the core at its top, a guest's in the ``src/`` of its distribution."""

from __future__ import annotations

from pathlib import Path

from hbrt.borders.guests import CORE, PACKAGES

REPOSITORY = Path(__file__).resolve().parent.parent


def folder_of(package: str) -> Path:
    """Return the folder of a package, or of one in it: ``arm_client.dnn``."""
    name, *inner = package.split(".")
    top = REPOSITORY if name in CORE else next(REPOSITORY.glob(f"packages/*/src/{name}")).parent
    return top.joinpath(name, *inner)


def file_of(module: str) -> Path:
    """Return the file of a module or package; it need not be there."""
    path = folder_of(module)
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def python_files() -> list[Path]:
    """Return the files of all packages."""
    return [file for package in sorted(PACKAGES) for file in folder_of(package).rglob("*.py")]
