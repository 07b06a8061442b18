"""Control requests: their permissions and their answers. Every request gets one reply."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from dsp_server.clients import Client, Clients, NoRoomError, Recording
from dsp_server.daemon.gateways import Gateways
from dsp_server.daemon.injector import Injector
from dsp_server.daemon.report import Report
from dsp_server.lifecycle.lifecycle import CoreStateError, Done, Lifecycle
from dsp_server.memory.imports import open_memory
from dsp_server.memory.owners import Memory
from dsp_server.process.journal import Journal, Repeats
from dsp_server.tracing.board_trace import BoardTrace
from hbrt.borders.printable import printable
from hbrt.errors import RequestRefusedError, StatusError
from hbrt.findings.record import Finding, finding_of
from hbrt.profiles.profile import active
from hbrt.protocol import control
from hbrt.protocol.control import ControlReply, ControlRequest, MalformedMessageError
from hbrt.status import Status


class Pending(NamedTuple):
    """A request with a later answer."""

    identity: bytes
    request_id: int


_LATER = object()
_Verb: TypeAlias = Callable[[ControlRequest, Pending], Any]


class Control:
    """Answers control requests.

    Args:
        clients: The clients; their tokens are checked.
        memory: The DDR.
        lifecycle: The cores.
        report: The state of the board as data.
        journal: Takes a line on every malformed message.
        reply: Sends bytes to a peer, by its identity.
        leave: Finds what a client leaves that is about to detach; returns its findings.
        reclaim_soon: Called when freed memory waits for a running task.
        end: Ends the board.
        gateways: Relays that listen on TCP.
        injector: Keeps the faults that are asked for.
        trace: Turns the trace on and off.
        look: Looks at who waits for whom; calls back with the records.
    """

    def __init__(
        self,
        clients: Clients,
        memory: Memory,
        lifecycle: Lifecycle,
        report: Report,
        journal: Journal,
        reply: Callable[[bytes, bytes], None],
        leave: Callable[[Client], list[Finding]],
        reclaim_soon: Callable[[], None],
        end: Callable[[], None],
        gateways: Gateways,
        look: Callable[[Callable[[dict[str, Any]], None]], None],
        injector: Injector,
        trace: BoardTrace,
    ) -> None:
        self._clients = clients
        self._memory = memory
        self._lifecycle = lifecycle
        self._report = report
        self._journal = journal
        self._malformed = Repeats()
        self._reply = reply
        self._leave_lease = leave
        self._reclaim_soon = reclaim_soon
        self._end = end
        self._gateways = gateways
        self._look = look
        self._injector = injector
        self._verbs: dict[str, _Verb] = {
            "alloc": lambda r, _: memory.alloc(
                r.args["size"],
                self._lease(r).id,
                is_cached=bool(r.args["cached"]),
                site=r.args.get("site", ""),
                use=r.args.get("use", ""),
                at=r.args.get("at"),
            ),
            "free": lambda r, _: self._release(memory.free, r, r.args.get("site", "an unknown place")),
            "register": lambda r, _: memory.register(r.args["phy"], r.args["size"], self._lease(r).id),
            "import": lambda r, _: self._import(r),
            "unregister": lambda r, _: self._release(memory.unregister, r, r.args.get("site", "an unknown place")),
            "found": lambda r, _: self._found(r),
            "leave": self._leave,
            "slots": lambda r, _: clients.lease_slots(self._lease(r), r.args["count"]),
            "waits": lambda r, _: self._told(r),
            "verify_lease": lambda r, _: self._verify_lease(r),
            "record": lambda r, _: self._record(r),
            "status": lambda _r, _: report.status(),
            "ops": lambda _r, _: report.ops(),
            "profile": lambda _r, _: report.profile(),
            "tasks": lambda r, _: report.tasks(r.args["last"]),
            "trace": lambda r, _: trace.handle(r.args["do"], r.args["events"]),
            "why": self._why,
            "mem": lambda r, _: self._mem(r.args["most"]),
            "forget": lambda _r, _: journal.forget(),
            "stop": lambda _r, _: end(),
            "restart": self._restart,
            "recovery": lambda r, _: self._recovery(r.args.get("enabled")),
            "listen": self._listen,
            "inject": self._inject,
            "accelerators": lambda r, _: self._accelerators(r),
            "sram": lambda r, _: self._sram(r),
            "start_core": lambda r, pending: self._later(lifecycle.start_core, pending, r.args["core"]),
            "stop_core": lambda r, pending: self._later(lifecycle.stop_core, pending, r.args["core"]),
        }

    def handle(self, frames: list[bytes]) -> None:
        """Answer one message of the ROUTER socket; a malformed one gets a refusal, and the connection stays."""
        identity, *rest = frames
        try:
            request = control.decode_request(_one(rest))
        except MalformedMessageError as error:
            if (suffix := self._malformed.suffix(identity, time.monotonic())) is not None:
                self._journal.say(f"Refused a malformed control message: {error}{suffix}")
            self._send(identity, ControlReply(0, Status.HB_SYS_INVALID_ARGUMENT, str(error)))
            return
        pending = Pending(identity, request.id)
        try:
            data = self._verbs[request.verb](request, pending)
        except StatusError as error:
            self._answer(pending, error.status, error.text)
        except NoRoomError as error:
            self._answer(pending, Status.HB_DSP_TASK_NUM_EXCEED_LIMIT, str(error))
        except CoreStateError as error:
            self._answer(pending, Status.HB_DSP_INVALID_ARGUMENT, str(error))
        except Exception:  # noqa: BLE001 - a defect in one verb must not end the board
            import traceback

            self._journal.find("defect", f"{request.verb} failed in the daemon:\n{traceback.format_exc()}")
            text = f"{request.verb} failed in the daemon, which is a defect of it; 'hbrt log' has the traceback."
            self._answer(pending, Status.HB_SYS_NOT_RUNNING, text)
        else:
            if data is not _LATER:
                self._answer(pending, Status.HB_SYS_SUCCESS, "", data)

    def _answer(self, pending: Pending, status: int, text: str, data: Any = None) -> None:
        self._send(pending.identity, ControlReply(pending.request_id, int(status), text, data))

    def _send(self, identity: bytes, reply: ControlReply) -> None:
        try:
            raw = control.encode_reply(reply)
        except ValueError as error:
            raw = control.encode_reply(ControlReply(reply.id, Status.HB_SYS_INVALID_ARGUMENT, str(error)))
        self._reply(identity, raw)

    def _accelerators(self, request: ControlRequest) -> None:
        self._lease(request)
        self._lifecycle.start_accelerators()

    def _sram(self, request: ControlRequest) -> list[tuple[int, int]]:
        """Take a range of the NPU's SRAM, or give one back; returns what all programs had before, in ranges."""
        client, (start, size) = self._lease(request), (request.args["start"], request.args["size"])
        taken = [one for other in self._clients.by_id.values() if not other.has_gone for one in other.sram]
        is_free = all(start >= at + length or at >= start + size for at, length in taken)
        if request.args["do"] == "take" and size and is_free and start + size <= active().whole("sram.bytes"):
            client.sram.append((start, size))
        elif request.args["do"] == "give" and (start, size) in client.sram:
            client.sram.remove((start, size))
        return taken

    def _lease(self, request: ControlRequest) -> Client:
        import hmac  # here: it loads modules that a start does not need

        client = self._clients.by_id.get(request.client)
        if client is None or client.has_gone or not hmac.compare_digest(client.token, request.token):
            raise RequestRefusedError(
                Status.HB_DSP_PERMISSION,
                f"{request.verb} is for attached clients; client {request.client} is not attached with that token.",
            )
        return client

    def _verify_lease(self, request: ControlRequest) -> dict[str, Any]:
        """Verify for one client that a program holds another client's lease; returns that client's process and name."""
        import hmac

        self._lease(request)
        peer, args = self._clients.by_id.get(request.args["peer"]), request.args
        if (
            peer is None
            or peer.has_gone
            or not hmac.compare_digest(control.lease_proof(peer.token, args["nonce"]).encode(), args["proof"].encode())
        ):
            raise RequestRefusedError(
                Status.HB_DSP_PERMISSION,
                f"Client {args['peer']} is not attached with the token that was shown; connect anew.",
            )
        return {"pid": peer.pid, "name": peer.name}

    def _mem(self, most: int) -> dict[str, Any]:
        self._memory.look_at_free()
        return {"summary": self._memory.summary(), "blocks": self._memory.listing(most)}

    def _import(self, request: ControlRequest) -> int:
        client, args = self._lease(request), request.args
        opened = open_memory(client.pid, args["fd"], args["offset"], args["size"])
        return self._memory.import_(opened, args["size"], client.id, args.get("site", ""))

    def _found(self, request: ControlRequest) -> None:
        """Keep a finding that a client reports about itself: what only its own process can see."""
        client, args = self._lease(request), request.args
        text = printable(f"Process {client.pid} ({client.name}): {args['text']}")
        try:
            places = json.loads(args["places"])
            for place in places:
                place.update((name, printable(value)) for name, value in place.items() if isinstance(value, str))
            found = finding_of({"kind": args["kind"], "text": text, "places": places, "client": client.id})
        except (ValueError, TypeError, AttributeError) as error:  # a peer of another version
            raise RequestRefusedError(Status.HB_SYS_INVALID_ARGUMENT, str(error)) from None
        self._journal.keep(found)

    def _record(self, request: ControlRequest) -> None:
        client = self._lease(request)
        client.recording = Recording(request.args["directory"], request.args["limit"])
        self._lifecycle.processes.record_client(client)
        self._clients.hook(client)

    def _leave(self, request: ControlRequest, _: Pending) -> list[dict[str, Any]]:
        client = self._lease(request)
        self._lifecycle.processes.read_messages()
        return [found.as_dict() for found in self._leave_lease(client)]

    def _told(self, request: ControlRequest) -> None:
        self._lease(request).wait_report = request.args["text"]

    def _why(self, _: ControlRequest, pending: Pending) -> object:
        self._look(lambda records: self._answer(pending, Status.HB_SYS_SUCCESS, "", records))
        return _LATER

    def _release(self, release: Callable[..., None], request: ControlRequest, *more: str) -> None:
        release(request.args["phy"], self._lease(request).id, *more)
        if self._memory.is_waiting:
            self._reclaim_soon()

    def _recovery(self, enabled: int | None) -> bool:
        if enabled is not None:
            self._lifecycle.is_recovering = bool(enabled)
            self._journal.say(f"Recovery of crashed cores is {'enabled' if enabled else 'disabled'}.")
        return self._lifecycle.is_recovering

    def _inject(self, request: ControlRequest, _: Pending) -> list[dict[str, Any]]:
        if request.args.get("clear"):
            self._injector.clear()
        return self._injector.arm(line for line in request.args.get("faults", "").splitlines() if line.strip())

    def _restart(self, request: ControlRequest, pending: Pending) -> object:
        args = request.args
        load_seconds = args["load_ms"] / 1000 if "load_ms" in args else None
        return self._later(
            self._lifecycle.restart, pending, args.get("core", -1), args.get("image") or None, load_seconds=load_seconds
        )

    def _listen(self, request: ControlRequest, pending: Pending) -> object:
        done = lambda status, text, data: self._answer(pending, status, text, data)  # noqa: E731
        self._gateways.start(request.args["endpoint"], request.args.get("keys", ""), done)
        return _LATER

    def _later(self, ask: Callable[..., None], pending: Pending, *args: Any, **options: Any) -> object:
        done: Done = lambda status, text: self._answer(pending, status, text)  # noqa: E731
        ask(*args, done=done, **options)
        return _LATER


def _one(frames: list[bytes]) -> bytes:
    if len(frames) != 1:
        raise MalformedMessageError(f"A request is one frame; {len(frames)} came.")
    return frames[0]
