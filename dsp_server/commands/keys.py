"""``hbrt keys``: keys for programs that connect over TCP."""

from __future__ import annotations

from pathlib import Path

import click

from hbrt.cli.report import Report, reports


@click.group(epilog="Example: hbrt keys new ~/board-keys --name alice")
def command() -> None:
    """Create and list the keys that programs on other machines need to connect over TCP."""


_DIRECTORY = click.argument("directory", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))


@command.command(
    short_help="Create a relay's keys, and keys for one more program.",
    epilog="Example: hbrt keys new ~/board-keys --name alice",
)
@click.option("--name", metavar="NAME", help="Create keys for a program too, and admit it under this name.")
@_DIRECTORY
@reports
def new(directory: Path, name: str | None) -> Report:
    """Create the relay's keys in DIR if it has none, and with --name keys for one more program.

    DIR/for-NAME then has what the program's machine needs: move it there, to the directory that HBRT_KEYS names
    (by default hbrt/keys in the user's settings directory). To lock a program out, remove DIR/clients/NAME.key.
    """
    from hbrt.remote.keys import add_client, check_name, make_server

    if name is not None:
        check_name(name)  # before creating anything
    directory = directory.absolute()
    is_new = make_server(directory)
    where = None if name is None else add_client(directory, name)
    lines = []
    if is_new:
        lines.append(f"Made the relay's keys in {directory}: hbrt relay --listen tcp://HOST:PORT --keys {directory}")
    elif name is None:
        lines.append(f"{directory} already has a relay's keys; nothing changed. use --name NAME to add a program.")
    if where is not None:
        lines.append(f"Made keys for {name}: move {where} to its machine, and set HBRT_KEYS to it there.")
    data = {"directory": str(directory), "is_new": is_new, "name": name, "for_name": where and str(where)}
    return Report(data, *lines)


@command.command(
    "list", short_help="List the programs that may connect.", epilog="Example: hbrt keys list ~/board-keys"
)
@_DIRECTORY
@reports
def list_(directory: Path) -> Report:
    """List the programs that may connect with the keys in DIR: name and public key."""
    from hbrt.remote.keys import clients_by_key, server_pair

    server_pair(directory)  # refuses a directory without keys
    found = sorted(((name, key.decode()) for key, name in clients_by_key(directory).items()))
    return Report([{"name": name, "key": key} for name, key in found], *(f"{name}  {key}" for name, key in found))
