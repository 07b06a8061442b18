"""Where a relay listens, who may come in there, and the refusal of what would let anybody in."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hbrt.errors import BoardError, WrongUseError
from hbrt.protocol.remote import HEARTBEAT_MS, HEARTBEAT_TIMEOUT_MS, MAX_FRAME_BYTES
from hbrt.remote.keys import KeyPair, clients_by_key, server_pair

if TYPE_CHECKING:
    import zmq

HANDSHAKE_MS = 5000
ZAP_DOMAIN = "hbrt"
MOST_UNSENT = 4096  # frames; deputies bound their bytes
_ENDPOINT = re.compile(r"tcp://(\*|[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")


class Listen(NamedTuple):
    """A place to listen at that was found good.

    Args:
        host: Address or ``*``.
        port: TCP port; 0 takes one that is free.
        keys: The relay's directory of keys; None lets in whoever can reach it, which is this machine alone.
        pair: The relay's own keys.
    """

    host: str
    port: int
    keys: Path | None = None
    pair: KeyPair | None = None


def parse(endpoint: str, keys: Path | None) -> Listen:
    """Where to listen.

    Args:
        endpoint: ``tcp://HOST:PORT``; ``*`` is every address of this machine, port 0 one that is free.
        keys: Directory of keys, or None.

    Raises:
        WrongUseError: not an endpoint, or one that others can reach, without keys. KeysError: the keys are no good.
    """
    found = _ENDPOINT.fullmatch(endpoint)
    if found is None or int(found[2]) >= 1 << 16:
        raise WrongUseError(
            f"{endpoint!r} is no place to listen at: write tcp://HOST:PORT, as in tcp://127.0.0.1:5557."
        )
    host, port = found[1], int(found[2])
    if keys is not None:
        return Listen(host, port, keys, server_pair(keys))
    address = _loopback(host)
    if address is None:
        raise WrongUseError(
            f"Without keys a relay listens on loopback only (tcp://127.0.0.1:{port}), and {host} can be reached from "
            "elsewhere. Make keys with 'hbrt keys new --name NAME DIR' and give --keys DIR."
        )
    return Listen(address, port)


def _loopback(host: str) -> str | None:
    """The host as a loopback address, or None when it is another one."""
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        if host != "localhost":
            return None  # whatever a name leads to now, it may lead elsewhere tomorrow
        return "127.0.0.1"
    return host if address.is_loopback else None


class Door:
    """A listening socket, and who looks at keys.

    Args:
        context: ZeroMQ context of the gate.
        listen: Where, and for whom.

    Raises:
        BoardError: the address is in use, or not one of this machine.
    """

    def __init__(self, context: zmq.Context[Any], listen: Listen) -> None:
        import zmq

        self._listen = listen
        self.socket: zmq.Socket[bytes] = context.socket(zmq.ROUTER)
        self.socket.linger = 500
        self.socket.maxmsgsize = MAX_FRAME_BYTES
        self.socket.sndhwm, self.socket.rcvhwm = MOST_UNSENT, 0  # backlog.py bounds what comes, and says why not ZeroMQ
        self.socket.router_mandatory = 1
        self.socket.handshake_ivl = HANDSHAKE_MS
        self.socket.heartbeat_ivl, self.socket.heartbeat_timeout = HEARTBEAT_MS, HEARTBEAT_TIMEOUT_MS
        self.socket.ipv6 = int(listen.host.startswith("["))
        self.accepted: zmq.Socket[bytes] = self.socket.get_monitor_socket(int(zmq.EVENT_ACCEPTED))
        from zmq.auth.thread import ThreadAuthenticator

        # Without keys, too: who is asked for nothing is let in, but for protocols older than ZMTP 3, which give no sign
        # of life, nor the descriptor that they come over.
        self._guard = ThreadAuthenticator(context)
        self._guard.start()
        self.socket.zap_domain = ZAP_DOMAIN.encode()
        if listen.pair is not None:
            self._guard.configure_curve_callback(ZAP_DOMAIN, self)
            self.socket.curve_server = 1
            self.socket.curve_publickey, self.socket.curve_secretkey = listen.pair
        try:
            self.socket.bind(f"tcp://{listen.host}:{listen.port or '*'}")
        except zmq.ZMQError as error:
            self.close()
            raise BoardError(
                f"The relay cannot listen at tcp://{listen.host}:{listen.port}: {zmq.strerror(error.errno or 0)}."
            ) from None
        self.endpoint: str = self.socket.last_endpoint.decode().rstrip("\0")

    def callback(self, _domain: str, key: bytes) -> bool:
        """Whether a public key may come in; ZeroMQ's authenticator asks, in a thread of its own."""
        return self.name_of(key) is not None

    @property
    def has_keys(self) -> bool:
        """Whether who comes in shows a key."""
        return self._listen.keys is not None

    def name_of(self, key: bytes) -> str | None:
        """Name of the program that has a key, None when it may not come in (any more)."""
        return clients_by_key(self._listen.keys).get(key) if self._listen.keys is not None else None

    def close(self) -> None:
        """Let nobody in any more."""
        self.socket.disable_monitor()
        self.accepted.close(0)
        self.socket.close()
        self._guard.stop()
