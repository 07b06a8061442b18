"""What a signal handler of the program raises comes out of each call, whatever the call was doing."""

from __future__ import annotations

import functools
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import arm_client as hb
from arm_client import dnn
from hbrt.borders.interrupts import let_out
from rknn_api.lite.rknn_lite import RKNNLite
from tests.arm_client.dnn.nets import double


class TooLongError(Exception):
    """The program's own."""


class Handler:
    def __call__(self, *_: object) -> None:
        raise TooLongError

    def method(self, *_: object) -> None:
        raise TooLongError

    @staticmethod
    def timeout(*_: object) -> None:
        raise TimeoutError


@pytest.fixture(params=["object", "method", "partial", "os_error"])
def kind(request: pytest.FixtureRequest) -> Iterator[type[Exception]]:
    """What the handler of SIGUSR1 raises."""
    handlers: dict[str, Callable[..., None]] = {
        "object": Handler(),
        "method": Handler().method,
        "partial": functools.partial(Handler().method, 1),
        "os_error": Handler.timeout,
    }
    before = signal.signal(signal.SIGUSR1, handlers[request.param])
    yield TimeoutError if request.param == "os_error" else TooLongError
    signal.signal(signal.SIGUSR1, before)


def interrupt(*_: object, **__: object) -> Any:
    signal.raise_signal(signal.SIGUSR1)
    raise AssertionError("the handler raises")


class Interrupting:
    """An argument whose own code is interrupted."""

    __index__ = __float__ = __fspath__ = __len__ = interrupt

    @property
    def _obj(self) -> Any:
        return interrupt()


ODD: Any = Interrupting()


CALLS: dict[str, Callable[[], object]] = {
    "hbSysAllocMem": lambda: hb.hbSysAllocMem(ODD, 64),
    "hbSysAllocMem's size": lambda: hb.hbSysAllocMem(hb.hbSysMem(), ODD),
    "hbDSPWaitTaskDone": lambda: hb.hbDSPWaitTaskDone(ODD, 0),
    "hbDNNInitializeFromFiles": lambda: hb.hbDNNInitializeFromFiles(hb.hbPackedDNNHandle_t(), ODD, 1),
    "hbDNNWaitTaskDone": lambda: hb.hbDNNWaitTaskDone(ODD, 0),
}


@pytest.mark.parametrize("name", CALLS)
def test_it_comes_out_of_the_code_of_an_argument(name: str, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        CALLS[name]()


def test_it_comes_out_of_loads(kind: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "double.onnx"
    file.write_bytes(double())
    monkeypatch.setattr("arm_client.dnn.loading.model.specify", interrupt)
    with pytest.raises(kind):
        hb.hbDNNInitializeFromFiles(hb.hbPackedDNNHandle_t(), [str(file)], 1)
    with pytest.raises(kind):
        dnn.load(file)
    monkeypatch.setattr("rknn_api.lite.rknn_lite.Container.read", interrupt)
    with pytest.raises(kind):
        RKNNLite().load_rknn(str(file))


def test_other_errors_stay() -> None:
    try:
        int("x")
    except ValueError as error:
        let_out(error)
    let_out(ValueError("never raised"))


def test_an_error_in_consequence_of_it_is_it(kind: type[Exception]) -> None:
    def refuse() -> None:
        try:
            convert()
        except ValueError as error:
            let_out(error)

    def convert() -> None:
        try:
            interrupt()
        except kind:
            raise ValueError("the file is damaged") from None

    with pytest.raises(kind):
        refuse()
