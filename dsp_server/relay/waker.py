"""Wakes a thread that sleeps in a ZeroMQ socket: a second thread sleeps on descriptors, and sends it a message.

So the first thread needs neither an epoll beside its socket nor a time limit; each costs more than a message. The first
thread runs the handlers itself, in ``Waker.dispatch``.
"""

from __future__ import annotations

import os
import secrets
import select
import threading
from collections.abc import Callable
from typing import Any

import zmq


class Waker:
    """Sends a message to a PULL socket for watched descriptors, and once a beat.

    Args:
        context: The socket's context.
        address: The socket's inproc address.
        beat_seconds: Longest time between two messages.
    """

    def __init__(self, context: zmq.Context[Any], address: str, beat_seconds: float) -> None:
        self.message = secrets.token_bytes(16)  # a peer cannot guess it
        self._socket = context.socket(zmq.PUSH)
        self._socket.linger = 0
        self._socket.connect(address)
        self._beat_seconds = beat_seconds
        self._epoll = select.epoll()
        self._handlers: dict[int, Callable[[], None]] = {}
        self._dispatched = threading.Semaphore(0)
        self._is_closing = False
        self._close_fd = os.eventfd(0, os.EFD_CLOEXEC)
        self._epoll.register(self._close_fd, select.EPOLLIN)
        self._thread = threading.Thread(target=self._run, name="relay-waker", daemon=True)
        self._thread.start()

    def watch(self, fd: int, handler: Callable[[], None]) -> None:
        """Make ``dispatch`` call ``handler()`` while ``fd`` is readable."""
        self._handlers[fd] = handler
        self._epoll.register(fd, select.EPOLLIN)

    def unwatch(self, fd: int) -> None:
        """Undo ``watch``; call it before the descriptor is closed."""
        if self._handlers.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def dispatch(self) -> None:
        """Call the handlers of readable descriptors; the owner of the PULL socket calls this for each ``message``."""
        try:
            # Polled again: since the message, a descriptor may have been closed, and its number may be watched anew.
            ready = [(fd, self._handlers.get(fd)) for fd, _ in self._epoll.poll(0)]
            for fd, handler in ready:
                if handler is not None and self._handlers.get(fd) is handler:  # no earlier handler has unwatched it
                    handler()
        finally:
            self._dispatched.release()

    def close(self) -> None:
        """Stop the thread."""
        self._is_closing = True
        os.eventfd_write(self._close_fd, 1)
        self._dispatched.release()
        self._thread.join()
        self._epoll.close()
        os.close(self._close_fd)

    def _run(self) -> None:
        while True:
            self._epoll.poll(self._beat_seconds)
            if self._is_closing:
                break
            self._socket.send(self.message)
            self._dispatched.acquire()
        self._socket.close()
