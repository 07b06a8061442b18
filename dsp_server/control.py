"""Control requests: who may ask what, and what each verb answers. Every request gets one reply."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any, NamedTuple

from dsp_server.clients import Client, NoRoomError
from dsp_server.cores import CoreStateError
from dsp_server.image import ImageError
from dsp_server.memory import MemoryRefusedError
from hbrt import wire
from hbrt.status import Status
from hbrt.wire import ControlReply, ControlRequest, MalformedMessageError

if TYPE_CHECKING:
    from dsp_server.supervisor import Supervisor


class Pending(NamedTuple):
    """A request whose answer comes later."""

    identity: bytes
    request_id: int


class Refused(Exception):
    """A request is refused: its status and the sentence."""

    def __init__(self, status: Status, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


_LATER = object()


class Control:
    """Answers control requests on behalf of a supervisor."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._board = supervisor

    def handle(self, frames: list[bytes]) -> None:
        """Answer one message of the ROUTER socket; nonsense gets a refusal and the connection goes on."""
        identity, raw = frames[0], frames[-1]
        try:
            if len(frames) != 2:
                raise MalformedMessageError(f"A request is one frame; {len(frames) - 1} came.")
            request = wire.decode_request(raw)
        except MalformedMessageError as error:
            self._board.say(f"Refused a malformed control message: {error}")
            self._send(identity, ControlReply(0, Status.HB_SYS_INVALID_ARGUMENT, str(error)))
            return
        pending = Pending(identity, request.id)
        try:
            data = self._do(request, pending)
        except (Refused, MemoryRefusedError, ImageError) as error:
            self.answer(pending, error.status, str(error))
        except (CoreStateError, NoRoomError) as error:
            status = (
                Status.HB_DSP_TASK_NUM_EXCEED_LIMIT
                if isinstance(error, NoRoomError)
                else Status.HB_DSP_INVALID_ARGUMENT
            )
            self.answer(pending, status, str(error))
        else:
            if data is not _LATER:
                self.answer(pending, Status.HB_SYS_SUCCESS, "", data)

    def answer(self, pending: Pending, status: Status, text: str, data: Any = None) -> None:
        """Send the reply to a request."""
        self._send(pending.identity, ControlReply(pending.request_id, int(status), text, data))

    def _send(self, identity: bytes, reply: ControlReply) -> None:
        try:
            raw = wire.encode_reply(reply)
        except ValueError as error:
            raw = wire.encode_reply(ControlReply(reply.id, Status.HB_SYS_INVALID_ARGUMENT, str(error)))
        self._board.reply(identity, raw)

    def _lease(self, request: ControlRequest) -> Client:
        client = self._board.clients.by_id.get(request.client)
        if client is None or not hmac.compare_digest(client.token, request.token):
            raise Refused(
                Status.HB_DSP_PERMISSION,
                f"{request.verb} is for attached clients; client {request.client} is not attached with that token.",
            )
        return client

    def _do(self, request: ControlRequest, pending: Pending) -> Any:
        board, args = self._board, request.args
        match request.verb:
            case "alloc":
                client = self._lease(request)
                return board.memory.alloc(args["size"], client.id, is_cached=bool(args["cached"]))
            case "free":
                return self._free(self._lease(request), args["phy"])
            case "register":
                return board.memory.register(args["phy"], args["size"], self._lease(request).id)
            case "unregister":
                return board.memory.unregister(args["phy"], self._lease(request).id)
            case "slots":
                return board.clients.lease_slots(self._lease(request), args["count"])
            case "status":
                return board.status()
            case "ops":
                return board.ops()
            case "mem":
                return {"summary": board.memory.summary(), "blocks": board.memory.listing(args["most"])}
            case "stop":
                board.is_ending = True
                return None
            case "start_core":
                board.start_core(args["core"])
                board.waiting.append(pending)
                return _LATER
            case "stop_core":
                board.stop_core(args["core"], pending)
                return _LATER
            case "restart":
                load_seconds = args["load_ms"] / 1000 if "load_ms" in args else None
                board.restart(args.get("core", -1), args.get("image") or None, pending, load_seconds)
                return _LATER
        raise AssertionError(f"the verb {request.verb} is in the schema but not here")

    def _free(self, client: Client, phy_addr: int) -> None:
        """Free at once, or when the client's running task has ended: an op never loses memory under its hands."""
        board = self._board
        if not board.is_running_for(client.id):
            board.memory.free(phy_addr, client.id)
            return
        if (phy_addr, client.id) in board.deferred:
            raise Refused(Status.HB_SYS_NOT_ALLOCATED, f"The block at {phy_addr:#x} was freed already.")
        board.memory.check_owner(phy_addr, client.id)
        board.deferred.append((phy_addr, client.id))
