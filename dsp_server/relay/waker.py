"""Wakes a thread that sleeps in a ZeroMQ socket: another thread sleeps on descriptors, and sends it a message.

So the sleeper needs neither an epoll beside its socket nor a time limit, each of which costs more than a message. What
is to be done is done by the sleeper itself: ``Bell.answer`` runs the handlers.
"""

from __future__ import annotations

import os
import secrets
import select
import threading
from collections.abc import Callable
from typing import Any

import zmq


class Bell:
    """Rings a PULL socket for watched descriptors, and once a beat.

    Args:
        context: Of the socket.
        address: Where the socket is bound, over inproc.
        beat_seconds: Longest time between two rings.
    """

    def __init__(self, context: zmq.Context[Any], address: str, beat_seconds: float) -> None:
        self.message = secrets.token_bytes(16)  # nobody else can ring
        self._socket = context.socket(zmq.PUSH)
        self._socket.linger = 0
        self._socket.connect(address)
        self._beat_seconds = beat_seconds
        self._epoll = select.epoll()
        self._handlers: dict[int, Callable[[], None]] = {}
        self._answered = threading.Semaphore(0)
        self._is_closing = False
        self._close_bell = os.eventfd(0, os.EFD_CLOEXEC)
        self._epoll.register(self._close_bell, select.EPOLLIN)
        self._thread = threading.Thread(target=self._run, name="relay-bell", daemon=True)
        self._thread.start()

    def watch(self, fd: int, handler: Callable[[], None]) -> None:
        """Have ``handler()`` called by ``answer`` while ``fd`` is readable."""
        self._handlers[fd] = handler
        self._epoll.register(fd, select.EPOLLIN)

    def unwatch(self, fd: int) -> None:
        """Undo ``watch``; call it before the descriptor is closed."""
        if self._handlers.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def answer(self) -> None:
        """Call the handlers of what rang; the owner of the PULL calls it for each ``message``."""
        try:
            # Asked anew: since it rang, a descriptor may have been closed, and its number watched for somebody else.
            ready = [(fd, self._handlers.get(fd)) for fd, _ in self._epoll.poll(0)]
            for fd, handler in ready:
                if handler is not None and self._handlers.get(fd) is handler:  # no earlier handler has undone it
                    handler()
        finally:
            self._answered.release()

    def close(self) -> None:
        """Ring no more."""
        self._is_closing = True
        os.eventfd_write(self._close_bell, 1)
        self._answered.release()
        self._thread.join()
        self._epoll.close()
        os.close(self._close_bell)

    def _run(self) -> None:
        while True:
            self._epoll.poll(self._beat_seconds)
            if self._is_closing:
                break
            self._socket.send(self.message)
            self._answered.acquire()
        self._socket.close()
