"""``hbrt web``: a board in a browser of this machine."""

from __future__ import annotations

import click

from dsp_server.commands.web.server import HOST, Server
from dsp_server.commands.web.view import View
from hbrt.board.paths import BoardRef
from hbrt.cli.options import any_board_option
from hbrt.cli.tables import show_text
from hbrt.control.ask import look_at
from hbrt.errors import WrongUseError


@click.command(
    short_help="Show a board in a browser: cores, timeline, memory, findings, log.",
    epilog="Example: hbrt web --port 8080",
)
@any_board_option
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default="a free one",
    help="Port on loopback that the page is served at.",
)
def command(board: BoardRef, port: int) -> None:
    """Serve a page that shows a board while it works, until Ctrl-C: the last seconds as a timeline, too.

    The page is for browsers of this machine, and changes nothing. The address that is printed has a token, without
    which nobody reads it. It keeps working when the board stops and starts again.
    """
    look_at(board).close()  # a board that does not run is a mistake of the call
    view = View(board)
    try:
        server = Server(port, view)
    except OSError as error:
        raise WrongUseError(f"Port {port} of {HOST} cannot be used: {error.strerror}; choose another --port.") from None
    with server:
        show_text(f"Board {board.name} is at {server.url} (Ctrl-C ends this).")
        try:
            server.serve_forever(poll_interval=0.2)
        finally:
            view.close()
