"""The C names of models: handles, names, counts, properties; strange arguments; forks; the package stays light."""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import arm_client as hb
from arm_client.client import Board
from hbrt import dnn_types
from hbrt.dnn_types import hbDNNDataType
from tests.arm_client.dnn.nets import Gate, Net, ctrl, double, f32, good
from tests.arm_client.test_no_call_raises import ANYTHING, NUMBERS
from tests.each import each
from tests.limits import PATIENCE_S
from tests.nursery import run_program

Load = Callable[[bytes], Net]


def test_several_models_of_several_files_are_found_by_name(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    paths = [tmp_path / "one.onnx", tmp_path / "two.onnx", tmp_path / "below" / "one.onnx"]
    for size, path in enumerate(paths, 1):
        path.write_bytes(double((1, size)))
    packed, names, count = hb.hbPackedDNNHandle_t(), ctypes.POINTER(ctypes.c_char_p)(), ctypes.c_int32()
    good(hb.hbDNNInitializeFromFiles(packed, (ctypes.c_char_p * 3)(*(bytes(path) for path in paths)), 3))
    by_reference: Any = ctypes.byref(count)
    good(hb.hbDNNGetModelNameList(ctypes.byref(names), by_reference, packed))
    assert names[: count.value] == [b"one", b"two", b"one_2"]
    sizes, model = [], hb.hbDNNHandle_t()
    for name in names[: count.value]:
        properties = hb.hbDNNTensorProperties()
        good(hb.hbDNNGetModelHandle(model, packed, name))
        good(hb.hbDNNGetInputTensorProperties(properties, model, 0))
        sizes.append(properties.alignedByteSize)
    assert sizes == [4, 8, 12]
    listed: list[str] = []
    good(hb.hbDNNGetModelNameList(listed, count, packed))
    assert listed == ["one", "two", "one_2"]
    assert hb.hbDNNGetModelHandle(model, packed, "three") == hb.HB_DNN_INVALID_ARGUMENT
    assert "'one', 'two', 'one_2'" in hb.last_error()
    good(hb.hbDNNRelease(packed))


def test_the_address_of_one_name_is_an_array_of_one_as_in_the_samples(tmp_path: Path) -> None:
    path, raw = tmp_path / "one.onnx", double((1, 2))
    path.write_bytes(raw)
    packed, name = hb.hbPackedDNNHandle_t(), ctypes.c_char_p(bytes(path))
    ways: list[Any] = [ctypes.byref(name), ctypes.pointer(name)]
    for way in ways:
        good(hb.hbDNNInitializeFromFiles(packed, way, 1))
        good(hb.hbDNNRelease(packed))
    assert hb.hbDNNInitializeFromFiles(packed, ways[0], 2) == hb.HB_DNN_INVALID_ARGUMENT
    assert "files has 1 entries, fewer than the count of 2" in hb.last_error()
    kept, size = ctypes.create_string_buffer(raw), ctypes.c_int32(len(raw))
    data: Any = ctypes.byref(ctypes.c_void_p(ctypes.addressof(kept)))
    length: Any = ctypes.byref(size)
    good(hb.hbDNNInitializeFromDDR(packed, data, length, 1))
    good(hb.hbDNNRelease(packed))


def test_what_a_model_says_of_its_tensors(load: Load) -> None:
    net = load(double((1, 3, 4, 5)))
    count, name = ctypes.c_int32(), ctypes.c_char_p()
    for side, wanted in (("Input", b"x"), ("Output", b"y")):
        good(getattr(hb, f"hbDNNGet{side}Count")(count, net.handle))
        good(getattr(hb, f"hbDNNGet{side}Name")(name, net.handle, 0))
        assert (count.value, name.value) == (1, wanted)
        properties = hb.hbDNNTensorProperties()
        good(getattr(hb, f"hbDNNGet{side}TensorProperties")(ctypes.pointer(properties), net.handle, 0))
        assert list(properties.validShape.dimensionSize[:4]) == [1, 3, 4, 5]
        assert properties.tensorType == hbDNNDataType.HB_DNN_TENSOR_TYPE_F32
        assert (properties.alignedByteSize, list(properties.stride[:5])) == (240, [240, 80, 20, 4, 0])
        for index in (1, -1, None, "0", 0.0):
            for get in (f"hbDNNGet{side}Name", f"hbDNNGet{side}TensorProperties"):
                out = name if get.endswith("Name") else properties
                assert getattr(hb, get)(out, net.handle, index) == hb.HB_DNN_INVALID_ARGUMENT
                assert "has 1 " in hb.last_error()


def test_handles_that_stand_for_nothing_say_what_they_are(load: Load) -> None:
    net, count = load(double()), ctypes.c_int32()
    released = Net(double())
    released.close()
    model = hb.hbDNNHandle_t()
    packed: Any
    handle: Any
    for packed, sign in (
        (released.packed, "already released"),
        (hb.hbPackedDNNHandle_t(), "is null"),
        (None, "is null"),
        (hb.hbPackedDNNHandle_t(net.handle.value), "a model handle"),
        (hb.hbPackedDNNHandle_t((net.packed.value or 0) + 1), "is not a packed model handle"),
        (hb.hbPackedDNNHandle_t(7), "not a handle of this runtime"),
    ):
        calls = (
            hb.hbDNNRelease(packed),
            hb.hbDNNGetModelHandle(model, packed, "double"),
            hb.hbDNNGetModelNameList([], count, packed),
        )
        assert calls == (hb.HB_DNN_INVALID_PACKED_DNN_HANDLE,) * 3
        assert sign in hb.last_error()
    for handle in (released.handle, None, hb.hbDNNHandle_t(net.packed.value)):
        assert hb.hbDNNGetInputCount(count, handle) == hb.HB_DNN_INVALID_DNN_HANDLE
        task = hb.hbDNNTaskHandle_t()
        assert hb.hbDNNInfer(task, net.outputs, net.inputs, handle, ctrl()) == hb.HB_DNN_INVALID_DNN_HANDLE


def test_the_number_of_models_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    from arm_client.dnn.capi import runtime

    monkeypatch.setattr(runtime, "MAX_MODELS", 1)
    packed, data = hb.hbPackedDNNHandle_t(), double()
    assert hb.hbDNNInitializeFromDDR(packed, [data] * 2, [len(data)] * 2, 2) == hb.HB_DNN_MODEL_NUMBER_EXCEED_LIMIT
    assert not packed.value


def test_models_in_memory_of_each_kind() -> None:
    data, packed = double(), hb.hbPackedDNNHandle_t()
    block = ctypes.create_string_buffer(data, len(data))
    for way in (
        data,
        bytearray(data),
        memoryview(data),
        block,
        ctypes.addressof(block),
        ctypes.c_void_p(ctypes.addressof(block)),
    ):
        good(hb.hbDNNInitializeFromDDR(packed, [way], (ctypes.c_int32 * 1)(len(data)), 1))
        good(hb.hbDNNRelease(packed))
    for ways, lengths in (
        ([data], [len(data) + 1]),
        ([data], [0]),
        ([None], [9]),
        ([data], []),
        (data, [9]),
        ([9], [9]),
    ):
        assert hb.hbDNNInitializeFromDDR(packed, ways, lengths, 1) == hb.HB_DNN_INVALID_ARGUMENT
        assert hb.last_error()
        assert "Error:" not in hb.last_error(), "the name of an exception says nothing to who wrote C"


def test_infer_without_a_board_says_that_there_is_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HBRT_AUTOSTART", "0")  # else the load itself starts one
    program = (
        "import sys, arm_client as hb; from tests.arm_client.dnn.nets import *; data = double()\n"
        "packed, model = hb.hbPackedDNNHandle_t(), hb.hbDNNHandle_t()\n"
        "good(hb.hbDNNInitializeFromDDR(packed, [data], [len(data)], 1))\n"
        "good(hb.hbDNNGetModelHandle(model, packed, 'double'))\n"
        "tensor, task = hb.hbDNNTensor(), hb.hbDNNTaskHandle_t()\n"
        "print(hb.hbDNNInfer(task, tensor, tensor, model, ctrl()), hb.last_error())"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.startswith(str(int(hb.HB_DNN_INVALID_ARGUMENT)))
    assert "hbSysAllocMem" in said


def test_the_end_of_a_board_ends_inferences_with_its_status(dsp_board_factory: Any) -> None:
    with dsp_board_factory() as board:
        net = Net(double())
        assert net.run() == 0
        board.session.link.lose()
        task = hb.hbDNNTaskHandle_t()
        assert hb.hbDNNInfer(task, net.outputs, net.inputs, net.handle, ctrl()) == hb.HB_SYS_BOARD_LOST
        board.session.link.fault = hb.HB_DSP_RELAY_LOST  # of a board on another machine: as hbSys* has it
        assert hb.hbDNNInfer(task, net.outputs, net.inputs, net.handle, ctrl()) == hb.HB_SYS_BOARD_LOST
        board.session.link.fault = 0
        net.close()


MODEL_CALLS: dict[Callable[..., Any], tuple[st.SearchStrategy[Any], ...]] = {
    hb.hbDNNInitializeFromFiles: (ANYTHING, ANYTHING, ANYTHING | NUMBERS),
    hb.hbDNNInitializeFromDDR: (
        ANYTHING,
        st.lists(st.binary() | st.none() | st.text()) | st.none() | st.binary(),  # a number would be an address
        ANYTHING | st.lists(NUMBERS),
        ANYTHING | NUMBERS,
    ),
    hb.hbDNNRelease: (ANYTHING | NUMBERS,),
    hb.hbDNNGetModelNameList: (ANYTHING, ANYTHING, ANYTHING | NUMBERS),
    hb.hbDNNGetModelHandle: (ANYTHING, ANYTHING | NUMBERS, ANYTHING),
    hb.hbDNNGetInputCount: (ANYTHING, ANYTHING | NUMBERS),
    hb.hbDNNGetOutputName: (ANYTHING, ANYTHING | NUMBERS, ANYTHING | NUMBERS),
    hb.hbDNNGetInputSource: (ANYTHING, ANYTHING | NUMBERS, ANYTHING | NUMBERS),
    hb.hbDNNGetInputTensorProperties: (ANYTHING, ANYTHING | NUMBERS, ANYTHING | NUMBERS),
    hb.hbDNNInfer: (ANYTHING, ANYTHING, ANYTHING, ANYTHING | NUMBERS, ANYTHING),
    hb.hbDNNWaitTaskDone: (ANYTHING | NUMBERS, ANYTHING | NUMBERS),
    hb.hbDNNReleaseTask: (ANYTHING | NUMBERS,),
    hb.hbDNNSetTaskDoneCb: (ANYTHING | NUMBERS, ANYTHING, ANYTHING),
}


@pytest.mark.parametrize("call", MODEL_CALLS, ids=lambda call: call.__name__)
@given(data=st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_one_wrong_argument_among_right_ones_is_refused_or_harmless(
    load: Load, call: Callable[..., int], data: st.DataObject
) -> None:
    from arm_client.dnn.capi.runtime import runtime

    net = runtime_net(load)
    task = net.infer()
    fresh = hb.hbPackedDNNHandle_t()
    right: dict[Callable[..., Any], list[Any]] = {
        hb.hbDNNInitializeFromFiles: [fresh, ["none.onnx"], 1],
        hb.hbDNNInitializeFromDDR: [fresh, [double()], [len(double())], 1],
        hb.hbDNNRelease: [None],
        hb.hbDNNGetModelNameList: [[], ctypes.c_int32(), net.packed],
        hb.hbDNNGetModelHandle: [hb.hbDNNHandle_t(), net.packed, "double"],
        hb.hbDNNGetInputCount: [ctypes.c_int32(), net.handle],
        hb.hbDNNGetOutputName: [ctypes.c_char_p(), net.handle, 0],
        hb.hbDNNGetInputSource: [ctypes.c_int32(), net.handle, 0],
        hb.hbDNNGetInputTensorProperties: [hb.hbDNNTensorProperties(), net.handle, 0],
        hb.hbDNNInfer: [hb.hbDNNTaskHandle_t(), net.outputs, net.inputs, net.handle, ctrl()],
        hb.hbDNNWaitTaskDone: [task, 1000],
        hb.hbDNNReleaseTask: [hb.hbDNNTaskHandle_t()],
        hb.hbDNNSetTaskDoneCb: [task, lambda *_: None, None],
    }
    arguments = right[call]
    place = data.draw(st.integers(0, len(arguments) - 1))
    arguments[place] = data.draw(MODEL_CALLS[call][place])
    status = call(*arguments)
    assert type(status) is int
    if status:
        assert hb.last_error()
    for live in list(runtime.tasks.live_handles()):
        good(hb.hbDNNReleaseTask(hb.hbDNNTaskHandle_t(live)))
    if fresh.value:
        good(hb.hbDNNRelease(fresh))


def runtime_net(load: Load, kept: dict[int, Net] = {}) -> Net:  # noqa: B006 - one net for all examples of a test
    """The one net of this test's ``load``."""
    if id(load) not in kept:
        kept.clear()
        kept[id(load)] = load(double())
    return kept[id(load)]


@given(code=ANYTHING | NUMBERS)
def test_descriptions_are_texts(code: Any) -> None:
    assert isinstance(hb.hbDNNGetErrorDesc(code), str)
    assert hb.hbDNNGetVersion().startswith("1.1.0 ")


def in_child(report: Callable[[], Any]) -> Any:
    """What ``report`` returns in a forked child."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork with threads around is the point here
        pid = os.fork()
    if not pid:
        try:
            answer = report()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the parent shall see it
            answer = repr(error)
        os.write(write, json.dumps(answer).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = json.loads(pipe.read())
    os.waitpid(pid, 0)
    return answer


def test_a_fork_tells_the_parents_handles_and_may_load_its_own(load: Load) -> None:
    net = load(double())
    net.fill(f32([[1, 2, 3, 4]]))
    gate = Gate(net)
    task = net.infer()
    gate.await_begun()

    def use() -> Any:
        count = ctypes.c_int32()
        parents = [
            hb.hbDNNWaitTaskDone(task, 0),
            hb.hbDNNReleaseTask(task),
            hb.hbDNNGetInputCount(count, net.handle),
            hb.hbDNNRelease(net.packed),
        ]
        said = hb.last_error()
        mine = Net(double())  # attaches anew, and allocates there
        mine.fill(f32([[1, 1, 1, 1]]))
        status = mine.run()
        result = mine.read().tolist()
        mine.close()
        return parents, said, status, result

    parents, said, status, result = in_child(use)
    assert parents == [hb.HB_DNN_MULTI_PROGRESS_USE_ERROR] * 4
    assert "belongs to the parent of this process" in said
    assert (status, result) == (0, [[2, 2, 2, 2]])
    gate.open()
    good(hb.hbDNNWaitTaskDone(task, 0))
    good(hb.hbDNNReleaseTask(task))
    assert net.read().tolist() == [[2, 4, 6, 8]]


def test_naming_the_package_loads_no_library_of_models() -> None:
    program = "import sys, arm_client; print(sorted({'numpy', 'onnx', 'onnxruntime', 'cv2'} & set(sys.modules)))"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said == "[]\n"


@pytest.mark.parametrize(("missing", "wanted"), [("os_of_no_name", "True"), ("onnxruntime", "False")])
def test_a_star_brings_every_name_that_can_be_had(missing: str, wanted: str) -> None:
    program = (
        f"import sys; sys.modules[{missing!r}] = None\nfrom arm_client import *\n"
        "print('hbDNNInfer' in globals(), hbDNNTensor.__name__, hbDSPRpc.__name__, HB_DNN_TENSOR_TYPE_S8, Board)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said == f"{wanted} hbDNNTensor hbDSPRpc 8 <class 'arm_client.client.Board'>\n"


@each("name", ["hb.hbDNNInfer", "dnn.load", "hb.hbDNNRoiInfer"])
def test_a_library_that_is_missing_is_named_with_the_extra_that_brings_it(name: str) -> None:
    program = (
        f"import sys; sys.modules['onnxruntime'] = None; import arm_client as hb; from arm_client import dnn; {name}"
    )
    ended = run_program(["-c", program], PATIENCE_S)
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("ImportError: ")
    assert "onnxruntime, which is not installed" in last
    assert last.endswith("pip install '.[dnn]' in its clone.")


def test_a_program_that_ends_while_a_task_runs_ends(dsp_board: Board) -> None:
    program = (
        "import numpy as np; from tests.arm_client.dnn.nets import *\n"
        "net = Net(endless()); net.fill(np.array(1 << 62)); net.infer()\n"
        "print('running')"
    )
    environment = {**os.environ, "HBRT_BOARD": str(dsp_board.path), "HBRT_AUTOSTART": "0"}
    ended = run_program(["-c", program], PATIENCE_S, env=environment)
    assert (ended.returncode, ended.stdout) == (0, "running\n")
    assert re.fullmatch(
        r"hbrt: warning: leak: Process \d+ .* ended with 2 blocks .* not freed\..*\n", ended.stderr
    )  # the tensors'


def test_a_control_parameter_is_set_to_the_defaults_however_it_is_passed() -> None:
    for pass_it in (lambda ctrl: ctrl, ctypes.byref, ctypes.pointer):
        ctrl = hb.hbDNNInferCtrlParam(1, 2, 3, 4, 5, 6, 7)
        hb.HB_DNN_INITIALIZE_INFER_CTRL_PARAM(pass_it(ctrl))  # type: ignore[arg-type]
        assert bytes(ctrl) == bytes(ctypes.sizeof(ctrl))
    for nothing in (None, 5, ctypes.POINTER(hb.hbDNNInferCtrlParam)()):
        hb.HB_DNN_INITIALIZE_INFER_CTRL_PARAM(nothing)  # type: ignore[arg-type]


def test_each_enumerator_has_its_c_name() -> None:
    enums = [kind for kind in vars(dnn_types).values() if isinstance(kind, type) and issubclass(kind, IntEnum)]
    members = [(name, member) for kind in enums if kind is not IntEnum for name, member in kind.__members__.items()]
    assert ("HB_DNN_IMG_TYPE_NV12", hb.hbDNNDataType.HB_DNN_IMG_TYPE_NV12) in members
    for name, member in members:
        assert getattr(hb, name) is member
