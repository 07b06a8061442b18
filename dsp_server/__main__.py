"""``python -m dsp_server``, and the program ``dsp_server``: the daemon of a board, in the foreground."""

from __future__ import annotations


def main() -> None:
    """Entry of both."""
    from dsp_server.commands.start import daemon

    daemon.main(prog_name="dsp_server")


if __name__ == "__main__":
    main()
