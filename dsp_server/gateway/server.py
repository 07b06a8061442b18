"""A server for programs on other machines: its listening socket, connections, and the thread that polls them all."""

from __future__ import annotations

import ipaddress
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import zmq

from dsp_server.gateway.connections import Connection, Connections, PendingConnections, reset_when_closed
from hbrt.board.descriptors import check_free
from hbrt.errors import BoardError, WrongUseError
from hbrt.protocol.remote import HEARTBEAT_MS, HEARTBEAT_TIMEOUT_MS, MAX_FRAME_BYTES
from hbrt.remote.keys import KeyPair, KeysError, clients_by_key, server_pair

HANDSHAKE_MS = 5000
ZAP_DOMAIN = "hbrt"
MAX_UNSENT = 4096  # frames; remote clients limit their own bytes
_ENDPOINT = re.compile(r"tcp://(\*|[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")


class ListenOptions(NamedTuple):
    """A valid address to listen on, and its keys.

    Args:
        host: Address or ``*``.
        port: TCP port; 0 picks a free one.
        keys: The relay's directory of keys; None admits all programs on this machine and no others.
        pair: The relay's own keys.
        what: What is listening, for sentences.
    """

    host: str
    port: int
    keys: Path | None = None
    pair: KeyPair | None = None
    what: str = "relay"


def parse_endpoint(endpoint: str, keys: Path | None, what: str = "relay") -> ListenOptions:
    """Check an endpoint.

    Args:
        endpoint: ``tcp://HOST:PORT``; ``*`` is every address of this machine, port 0 a free one.
        keys: Directory of keys, or None.
        what: What is listening, for sentences.

    Raises:
        WrongUseError: not an endpoint, or one that other machines can reach and that has no keys.
        KeysError: the keys are invalid.
    """
    found = _ENDPOINT.fullmatch(endpoint)
    if found is None or int(found[2]) >= 1 << 16:
        raise WrongUseError(
            f"{endpoint!r} is not an address to listen at: expected tcp://HOST:PORT, such as tcp://127.0.0.1:5557."
        )
    host, port = found[1], int(found[2])
    if keys is not None:
        return ListenOptions(host, port, keys, server_pair(keys), what)
    address = _loopback(host)
    if address is None:
        raise WrongUseError(
            f"Without keys a {what} listens only on loopback (tcp://127.0.0.1:{port}), but {host} can be reached from "
            "elsewhere. Make keys with 'hbrt keys new --name NAME DIR' and give --keys DIR."
        )
    return ListenOptions(address, port, what=what)


def _loopback(host: str) -> str | None:
    """Return the host as a loopback address; None if it is not one."""
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        if host != "localhost":
            return None  # a name may resolve to a different address tomorrow
        return "127.0.0.1"
    return host if address.is_loopback else None


class Listener:
    """A listening socket, and the authenticator that checks keys.

    Args:
        context: ZeroMQ context of the gateway.
        options: Address and keys.

    Raises:
        BoardError: the address is in use, or is not an address of this machine.
    """

    def __init__(self, context: zmq.Context[Any], options: ListenOptions) -> None:
        self._options = options
        self.socket: zmq.Socket[bytes] = context.socket(zmq.ROUTER)
        self.socket.linger = 500
        self.socket.maxmsgsize = MAX_FRAME_BYTES
        self.socket.sndhwm, self.socket.rcvhwm = MAX_UNSENT, 0  # connections.py limits received data, and explains why
        self.socket.router_mandatory = 1
        self.socket.handshake_ivl = HANDSHAKE_MS
        self.socket.heartbeat_ivl, self.socket.heartbeat_timeout = HEARTBEAT_MS, HEARTBEAT_TIMEOUT_MS
        self.socket.ipv6 = int(options.host.startswith("["))
        self.accepted: zmq.Socket[bytes] = self.socket.get_monitor_socket(int(zmq.EVENT_ACCEPTED))
        from zmq.auth.thread import ThreadAuthenticator  # loads asyncio

        # Even without keys: the authenticator then admits all peers but those with protocols older than ZMTP 3, which
        # have neither heartbeats nor descriptors.
        self._authenticator = ThreadAuthenticator(context)
        self._authenticator.start()
        self.socket.zap_domain = ZAP_DOMAIN.encode()
        if options.pair is not None:
            self._authenticator.configure_curve_callback(ZAP_DOMAIN, self)
            self.socket.curve_server = 1
            self.socket.curve_publickey, self.socket.curve_secretkey = options.pair
        try:
            self.socket.bind(f"tcp://{options.host}:{options.port or '*'}")
        except zmq.ZMQError as error:
            self.close()
            raise BoardError(
                f"The {options.what} cannot listen at tcp://{options.host}:{options.port}: "
                f"{zmq.strerror(error.errno or 0)}."
            ) from None
        self.endpoint: str = self.socket.last_endpoint.decode().rstrip("\0")

    def callback(self, _domain: str, key: bytes) -> bool:
        """Whether a public key is admitted; called by ZeroMQ's authenticator in its own thread."""
        return self.name_of(key) is not None

    @property
    def has_keys(self) -> bool:
        """Whether peers need a key."""
        return self._options.keys is not None

    def name_of(self, key: bytes) -> str | None:
        """Name of the program that has a key; None if the key is not admitted (anymore)."""
        if self._options.keys is None:
            return None
        try:
            return clients_by_key(self._options.keys).get(key)
        except KeysError:  # others can write to them by now
            return None

    def close(self) -> None:
        """Stop listening."""
        self.socket.disable_monitor()
        self.accepted.close(0)
        self.socket.close()
        self._authenticator.stop()


_MAX_DESCRIPTORS = 24  # 16 to keep, the event loop in the keys' thread, and those used to load a module
MAX_AT_ONCE = 64  # messages received before other work gets a turn
_NOBLOCK = int(zmq.NOBLOCK)


class Server(ABC):
    """What a gateway and a farm have in common; subclasses handle messages, and connections that end.

    Args:
        options: Address and keys.
        log: Writes a sentence to the log.

    Raises:
        BoardError: it cannot listen on the address, or has too few file descriptors.
    """

    def __init__(self, options: ListenOptions, log: Callable[[str], None]) -> None:
        check_free(_MAX_DESCRIPTORS, f"a {options.what} that listens")
        self.is_stopping = False
        self._log = log
        self._handlers: dict[int | zmq.Socket[bytes], Callable[[], object]] = {}
        self._poller = zmq.Poller()
        self._context: zmq.Context[Any] = zmq.Context(io_threads=1)
        try:
            self._listener = Listener(self._context, options)
        except BaseException:
            self._context.term()
            raise
        self._socket = self._listener.socket
        self.endpoint = self._listener.endpoint
        port = int(self.endpoint.rpartition(":")[2])
        self._connections = Connections(port, self._is_reachable, has_keys=self._listener.has_keys)
        self._pending = PendingConnections(self._listener.accepted, self._connections, log, options.what)
        self.watch(self._socket, self._receive)
        self.watch(self._listener.accepted, self._pending.on_accepted)
        self.watch(self._connections.fileno(), self._on_ends)

    def watch(self, fd: int | zmq.Socket[bytes], handler: Callable[[], object], event: int = zmq.POLLIN, /) -> None:
        """Call ``handler`` whenever the descriptor is readable; with ``zmq.POLLERR``, when its other end is closed."""
        self._handlers[fd] = handler
        self._poller.register(fd, event)

    def unwatch(self, fd: int | zmq.Socket[bytes], /) -> None:
        """Undo ``watch``."""
        del self._handlers[fd]
        self._poller.unregister(fd)

    def stop(self) -> None:
        """Make ``run`` return soon; a signal handler may call it."""
        self.is_stopping = True

    @abstractmethod
    def run(self) -> None:
        """Serve until ``stop`` is called."""

    def close(self) -> None:
        """Stop listening, and release all connections."""
        for fd in list(self._handlers):
            self.unwatch(fd)
        self._listener.close()
        self._context.term()
        self._connections.close()

    def _poll(self, seconds: float) -> None:
        """Handle what is readable, or becomes readable within this time."""
        for ready, _ in self._poller.poll(int(seconds * 1000)):
            if (handler := self._handlers.get(ready)) is not None:
                handler()

    def _receive(self) -> None:
        for _ in range(MAX_AT_ONCE):
            try:
                identity = self._socket.recv(_NOBLOCK)
            except zmq.Again:
                return
            frame = self._socket.recv(_NOBLOCK, copy=False)
            is_more = frame.more
            while self._socket.rcvmore:
                self._socket.recv(_NOBLOCK)
            self._on_message(identity, frame, is_more=is_more)

    def _end_floods(self, most_bytes: int, seconds: float) -> None:
        """End connections that have too many unread bytes; a refusal would have to wait behind these bytes.

        Args:
            most_bytes: Maximum that a connection may have.
            seconds: Time since the last call.
        """
        self._pending.end_floods()
        for connection in self._connections.flooding(most_bytes, seconds):
            self._on_flood(connection)
            reset_when_closed(connection.socket)
            self._connections.end(connection)

    def _is_reachable(self, identity: bytes) -> bool:
        """Whether ZeroMQ still routes to an identity."""
        try:
            self._socket.send_multipart((identity, self._beat_frame()), _NOBLOCK)
        except zmq.Again:
            return True  # ZeroMQ routes to it, but the peer does not read
        except zmq.ZMQError:
            return False
        return True

    def _on_ends(self) -> None:
        for connection in self._connections.ended():
            self._on_end(connection)

    @abstractmethod
    def _on_message(self, identity: bytes, frame: zmq.Frame, *, is_more: bool) -> None:
        """Handle the first frame of a message; ``is_more`` tells whether more frames follow, which are dropped."""

    @abstractmethod
    def _on_end(self, connection: Connection) -> None:
        """Release a connection that has ended."""

    @abstractmethod
    def _on_flood(self, connection: Connection) -> None:
        """Handle a connection that is about to be ended because of its unread bytes."""

    @abstractmethod
    def _beat_frame(self) -> bytes:
        """Return a heartbeat in the programs' protocol."""
