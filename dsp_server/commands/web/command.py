"""``hbrt web``: show a board in a browser on this machine."""

from __future__ import annotations

import click

from dsp_server.commands.web.server import HOST, Answers, Server, answers_of
from dsp_server.commands.web.view import View
from hbrt.board.paths import BoardRef
from hbrt.cli.options import any_board_option, port_option
from hbrt.cli.tables import show_text
from hbrt.control.ask import look_at
from hbrt.errors import WrongUseError


@click.command(epilog="Example: hbrt web --port 8080")
@any_board_option
@port_option
def command(board: BoardRef, port: int) -> None:
    """Serve a page that shows a board, with a timeline of the last seconds, until Ctrl-C.

    The page is for browsers on this machine and is read-only. The printed address contains a token; requests without
    it are refused. The page keeps working when the board stops and starts again.
    """
    look_at(board).close()  # fail right away if the board is not running
    view = View(board)
    try:
        serve(answers_of(view), port, f"Board {board.name}")
    finally:
        view.close()


def serve(answers: Answers, port: int, what: str, page: str = "", *, opens: bool = False) -> None:
    """Serve pages until Ctrl-C, and print their address.

    Args:
        answers: See Server.
        port: Port to listen on; 0 picks a free one.
        what: What is shown, for the line that prints the address.
        page: The page to open.
        opens: Whether to open it in the user's browser.

    Raises:
        WrongUseError: the port is in use.
    """
    try:
        server = Server(port, answers, page)
    except OSError as error:
        raise WrongUseError(f"Cannot use port {port} of {HOST}: {error.strerror}; choose another --port.") from None
    with server:
        show_text(f"{what} is at {server.url} (press Ctrl-C to stop).")
        if opens:
            import webbrowser

            webbrowser.open(server.url)
        server.serve_forever(poll_interval=0.2)
