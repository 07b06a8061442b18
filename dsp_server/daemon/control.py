"""Control requests: who may send them, and their answers. Every request gets one reply."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from dsp_server.clients import Client, Clients, NoRoomError
from dsp_server.daemon.gateways import Gateways
from dsp_server.daemon.injector import Injector
from dsp_server.daemon.report import Report
from dsp_server.lifecycle.lifecycle import CoreStateError, Done, Lifecycle
from dsp_server.memory.imports import open_memory
from dsp_server.memory.owners import BoardMemory
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
    """A request that is answered now or later.

    Args:
        id: The request's id.
        reply: Sends the answer's bytes.
        client: The client that sent it over its lease; None for a process that is not attached.
    """

    id: int
    reply: Callable[[bytes], None]
    client: Client | None


_LATER = object()
_Verb: TypeAlias = Callable[[ControlRequest, Pending], Any]


class Control:
    """Answers control requests.

    Args:
        clients: The board's clients.
        memory: The DDR.
        lifecycle: The cores.
        report: The board's state as data.
        journal: Receives a line for every malformed message.
        detach: Finds what a client that is about to detach leaves behind; returns its findings.
        reclaim_soon: Called when freed memory waits for a running task.
        end: Ends the board.
        gateways: Relays that listen on TCP.
        injector: Keeps the faults that users ask for.
        trace: Turns tracing on and off.
        look: Finds out who waits for whom; calls back with the records.
    """

    def __init__(
        self,
        clients: Clients,
        memory: BoardMemory,
        lifecycle: Lifecycle,
        report: Report,
        journal: Journal,
        detach: Callable[[Client], list[Finding]],
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
        self._detach_lease = detach
        self._reclaim_soon = reclaim_soon
        self._end = end
        self._gateways = gateways
        self._look = look
        self._injector = injector
        self._verbs: dict[str, _Verb] = {
            "alloc": lambda r, asked: memory.alloc(
                r.args["size"],
                self._lease(asked).id,
                is_cached=bool(r.args["cached"]),
                site=r.args.get("site", ""),
                use=r.args.get("use", ""),
                at=r.args.get("at"),
            ),
            "free": lambda r, asked: self._release(memory.free, r, asked),
            "register": lambda r, asked: memory.register(r.args["phy"], r.args["size"], self._lease(asked).id),
            "import": self._import,
            "unregister": lambda r, asked: self._release(memory.unregister, r, asked),
            "found": self._found,
            "leave": self._detach,
            "slots": lambda r, asked: clients.lease_slots(self._lease(asked), r.args["count"]),
            "waits": self._told,
            "verify_lease": lambda r, _: self._verify_lease(r),
            "record": self._record,
            "status": lambda _r, _: report.status(),
            "ops": lambda _r, _: report.ops(),
            "profile": lambda _r, _: report.profile(),
            "tasks": lambda r, _: report.tasks(r.args["last"]),
            "trace": lambda r, _: trace.handle(r.args["do"], r.args["events"]),
            "why": self._why,
            "mem": lambda r, _: self._mem(r.args["most"]),
            "forget": lambda _r, _: journal.clear(),
            "stop": lambda _r, _: end(),
            "restart": self._restart,
            "recovery": lambda r, _: self._recovery(r.args.get("enabled")),
            "listen": self._listen,
            "inject": self._inject,
            "accelerators": self._accelerators,
            "sram": self._sram,
            "start_core": lambda r, pending: self._later(lifecycle.start_core, pending, r.args["core"]),
            "stop_core": lambda r, pending: self._later(lifecycle.stop_core, pending, r.args["core"]),
        }

    def handle(
        self, raw: bytes, reply: Callable[[bytes], None], peer: bytes = b"", client: Client | None = None
    ) -> None:
        """Answer one message; a malformed one is refused, and the connection stays open.

        Args:
            raw: The message.
            reply: Sends the answer's bytes.
            peer: Identifies a sender that is not attached.
            client: The client that sent it over its lease.
        """
        try:
            request = control.decode_request(raw)
        except MalformedMessageError as error:
            name = peer or repr(client and client.id).encode()
            if (suffix := self._malformed.suffix(name, time.monotonic())) is not None:
                self._journal.say(f"Refused a malformed control message: {error}{suffix}")
            self._answer(Pending(0, reply, client), Status.HB_SYS_INVALID_ARGUMENT, str(error))
            return
        pending = Pending(request.id, reply, client)
        try:
            if control.VERBS[request.verb].leased:
                self._lease(pending, request.verb)
            data = self._verbs[request.verb](request, pending)
        except StatusError as error:
            self._answer(pending, error.status, error.text)
        except NoRoomError as error:
            self._answer(pending, Status.HB_DSP_TASK_NUM_EXCEED_LIMIT, str(error))
        except CoreStateError as error:
            self._answer(pending, Status.HB_DSP_INVALID_ARGUMENT, str(error))
        except Exception:  # noqa: BLE001 - a bug in one verb must not end the board
            import traceback

            self._journal.find("defect", f"{request.verb} failed in the daemon:\n{traceback.format_exc()}")
            text = f"{request.verb} failed in the daemon; this is a bug in hbrt; 'hbrt log' has the traceback."
            self._answer(pending, Status.HB_SYS_NOT_RUNNING, text)
        else:
            if data is not _LATER:
                self._answer(pending, Status.HB_SYS_SUCCESS, "", data)

    def _answer(self, pending: Pending, status: int, text: str, data: Any = None) -> None:
        try:
            raw = control.encode_reply(ControlReply(pending.id, int(status), text, data))
        except ValueError as error:
            raw = control.encode_reply(ControlReply(pending.id, Status.HB_SYS_INVALID_ARGUMENT, str(error)))
        pending.reply(raw)

    def _accelerators(self, request: ControlRequest, asked: Pending) -> None:
        self._clients.note_model(self._lease(asked), request.args.get("model", ""))
        self._lifecycle.start_accelerators()

    def _sram(self, request: ControlRequest, asked: Pending) -> list[tuple[int, int]]:
        """Reserve a range of the NPU's SRAM, or release one; return the ranges that programs had before."""
        client, (start, size) = self._lease(asked), (request.args["start"], request.args["size"])
        taken = [one for other in self._clients.by_id.values() if not other.has_gone for one in other.sram]
        is_free = all(start >= at + length or at >= start + size for at, length in taken)
        if request.args["do"] == "take" and size and is_free and start + size <= active().whole("sram.bytes"):
            client.sram.append((start, size))
        elif request.args["do"] == "give" and (start, size) in client.sram:
            client.sram.remove((start, size))
        return taken

    def _lease(self, asked: Pending, verb: str = "") -> Client:
        if asked.client is None:
            raise RequestRefusedError(
                Status.HB_DSP_PERMISSION, f"{verb} is for attached clients: attach, then send it over that connection."
            )
        return asked.client

    def _verify_lease(self, request: ControlRequest) -> dict[str, Any]:
        """Verify, for one client, that a program holds another's lease; return that other's process and name."""
        import hmac  # imported here: it loads modules that starting a board does not need

        peer, args = self._clients.by_id.get(request.args["peer"]), request.args
        if (
            peer is None
            or peer.has_gone
            or not hmac.compare_digest(control.lease_proof(peer.token, args["nonce"]).encode(), args["proof"].encode())
        ):
            raise RequestRefusedError(
                Status.HB_DSP_PERMISSION,
                f"Client {args['peer']} is not attached with the token that was presented; connect again.",
            )
        return {"pid": peer.pid, "name": peer.name}

    def _mem(self, most: int) -> dict[str, Any]:
        self._memory.look_at_free()
        return {"summary": self._memory.summary(), "blocks": self._memory.listing(most)}

    def _import(self, request: ControlRequest, asked: Pending) -> int:
        client, args = self._lease(asked), request.args
        opened = open_memory(client.pid, args["fd"], args["offset"], args["size"])
        return self._memory.import_(opened, args["size"], client.id, args.get("site", ""))

    def _found(self, request: ControlRequest, asked: Pending) -> None:
        """Keep a finding that a client reports about itself, which only its own process can see."""
        client, args = self._lease(asked), request.args
        text = printable(f"Process {client.pid} ({client.name}): {args['text']}")
        try:
            places = json.loads(args["places"])
            for place in places:
                place.update((name, printable(value)) for name, value in place.items() if isinstance(value, str))
            found = finding_of({"kind": args["kind"], "text": text, "places": places, "client": client.id})
        except (ValueError, TypeError, AttributeError) as error:  # a peer of another version
            raise RequestRefusedError(Status.HB_SYS_INVALID_ARGUMENT, str(error)) from None
        self._journal.keep(found)

    def _record(self, request: ControlRequest, asked: Pending) -> None:
        client = self._lease(asked)
        client.recording = request.args["directory"]
        self._lifecycle.processes.record_client(client)
        self._clients.hook(client)

    def _detach(self, _: ControlRequest, asked: Pending) -> list[dict[str, Any]]:
        client = self._lease(asked)
        self._lifecycle.processes.read_messages()
        return [found.as_dict() for found in self._detach_lease(client)]

    def _told(self, request: ControlRequest, asked: Pending) -> None:
        self._lease(asked).wait_report = request.args["text"]

    def _why(self, _: ControlRequest, pending: Pending) -> object:
        self._look(lambda records: self._answer(pending, Status.HB_SYS_SUCCESS, "", records))
        return _LATER

    def _release(self, release: Callable[..., None], request: ControlRequest, asked: Pending) -> None:
        release(request.args["phy"], self._lease(asked).id, request.args.get("site", "an unknown place"))
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
