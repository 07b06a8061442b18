"""``hbrt farm serve`` and ``hbrt farm status``: boards that programs lease."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from hbrt import settings
from hbrt.cli.options import Seconds, check_option, image_option, profile_option
from hbrt.cli.report import Report, reports
from hbrt.cli.tables import Column, Table, duration, number, numbers, show_text, state

LISTEN = "tcp://127.0.0.1:5600"


def _since(row: dict[str, Any]) -> str:
    return duration(time.time() - row["since"])


_WHO = (Column("USER", lambda row: row["user"] or None), Column("PROGRAM", lambda row: row["program"] or None))
_BOARDS = (*numbers("BOARD"), Column("POOL"), state("STATE"), number("SINCE", _since), *_WHO)
_QUEUE = (*numbers("PLACE"), Column("POOL"), number("WAITS", _since), *_WHO, Column("WHY"))


@click.command(
    short_help="Keep a pool of boards, and lease them to programs (HBRT_BOARD=farm://HOST:PORT).",
    epilog="Example: hbrt farm serve --boards 4 --image my_image.py --per-user 2\n\n"
    "For other machines: hbrt farm serve --boards 4 --listen 'tcp://*:5600' --keys ~/board-keys",
)
@click.option("--boards", metavar="N", type=click.IntRange(1, 64), help="Number of boards. Default: 2, or none with "
              "--pool.")  # fmt: skip
@image_option(help="Image of each board. Default: HBRT_IMAGE, else the packaged ops.")
@click.option("--pool", "others", metavar="NAME=N[,image=FILE][,profile=NAME]", multiple=True,
              help="Another pool, for farm://HOST:PORT/NAME. May be given more than once.")  # fmt: skip
@click.option("--per-user", metavar="K", type=click.IntRange(0), default=0, help="Maximum number of boards per user; "
              "0 for no limit. Default: 0.")  # fmt: skip
@click.option("--idle-timeout", metavar="SECONDS", type=Seconds(), help="Take a board back if it had no task for "
              "this time. Default: never.")  # fmt: skip
@click.option("--lease-timeout", metavar="SECONDS", type=Seconds(), help="Take a board back after this time. Default: "
              "never.")  # fmt: skip
@click.option("--listen", metavar="tcp://HOST:PORT", default=LISTEN, show_default=True,
              help="Address to listen on. HOST * means every address, PORT 0 any port.")  # fmt: skip
@click.option("--keys", metavar="DIR", type=click.Path(path_type=Path, file_okay=False),
              help="Directory of keys ('hbrt keys new'). Without it only loopback addresses are allowed.")  # fmt: skip
@check_option
@profile_option
def serve(
    boards: int | None,
    image: Path | None,
    others: tuple[str, ...],
    per_user: int,
    idle_timeout: float | None,
    lease_timeout: float | None,
    listen: str,
    keys: Path | None,
) -> None:
    """Keep boards running, and lease one to each program that names this farm.

    A program gets one with HBRT_BOARD=farm://HOST:PORT, and waits in a queue if all boards are taken. When the program
    ends, its board is replaced by a fresh one. The farm ends on Ctrl-C, and its boards with it.
    """
    from dsp_server.gateway.server import parse_endpoint
    from hbrt.errors import WrongUseError
    from hbrt_farm.leases.pools import DEFAULT, Pool, parse_pool
    from hbrt_farm.leases.serve import serve as serve_farm
    from hbrt_farm.leases.server import Limits

    settings.check()
    pools = [parse_pool(other) for other in others]
    if boards or not pools:
        file = str(image or settings.text("HBRT_IMAGE") or "")
        pools.insert(0, Pool(DEFAULT, boards or 2, str(Path(file).absolute()) if file else ""))
    elif image:
        raise click.UsageError("--image is for the boards of --boards: add --boards, or image= to --pool.")
    names = [pool.name for pool in pools]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise WrongUseError(f"Duplicate pool {twice[0]!r}: pool names must be unique.")
    limits = Limits(per_user, idle_timeout or 0.0, lease_timeout or 0.0)

    def on_running(address: str) -> None:
        count = sum(pool.boards for pool in pools)
        show_text(f"The farm listens at {address}, with {count} board{'s' * (count > 1)}; Ctrl-C ends it.")

    serve_farm(parse_endpoint(listen, keys, "farm"), pools, limits, on_running)


@click.command(
    short_help="List a farm's boards, who has them, and the queue.",
    epilog="Example: hbrt farm status farm://127.0.0.1:5600",
)
@click.argument("address", metavar="[farm://HOST:PORT]", default="")
@reports
def status(address: str) -> Report:
    """List a farm's boards, who holds each and since when, and who is waiting.

    By default, the farm is taken from HBRT_BOARD.
    """
    from hbrt.board.paths import board_ref
    from hbrt.control.ask import farm_status

    found = farm_status(board_ref(address or None))
    queue = ["", Table(_QUEUE, found["queue"])] if found["queue"] else []
    problems = [f"Board {row['board']}: {row['problem']}" for row in found["boards"] if row["problem"]]
    return Report(found, Table(_BOARDS, found["boards"]), *queue, warnings=problems)
