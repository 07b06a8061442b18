"""The base of the C structures: misspelled fields, other spellings, what a print shows."""

from __future__ import annotations

import copy
import ctypes
import pickle
import traceback

import pytest

from fastrpc.wire.types import fastrpc_async_descriptor, remote_arg, remote_rpc_thread_params
from hbrt.cv_types import hbDSPCvFlipParam
from hbrt.dnn_types import hbDNNInferCtrlParam, hbDNNQuantiScale, hbDNNTaskHandle_t, hbDNNTensorProperties
from hbrt.nn_types import hbDSPSoftmaxParam
from hbrt.structures import CStructure, CUnion, initializer
from hbrt.types import hbDSPRpcCtrlParam, hbDSPTask_t, hbSysMem
from tests.each import each


@each(
    "structure, misspelled, nearest",
    [
        (hbDSPRpcCtrlParam(), "rpcCMD", "rpcCmd"),
        (hbDSPRpcCtrlParam(), "dsp_core_id", "dspCoreId"),
        (hbDSPSoftmaxParam(), "data_sz", "data_size"),
        (hbSysMem(), "phyAdr", "phyAddr"),
        (hbDSPCvFlipParam(), "scr", "src"),
        (hbDNNTensorProperties().validShape, "numDimension", "numDimensions"),
        (remote_rpc_thread_params(), "stacksize", "stack_size"),
        (remote_arg().buf, "nlen", "nLen"),
        (remote_arg(), "buffer", "buf"),
    ],
)
def test_a_misspelled_field_is_refused_with_the_nearest_name(
    structure: CStructure | CUnion, misspelled: str, nearest: str
) -> None:
    kind = type(structure)
    sentence = f"{kind.__name__} has no field '{misspelled}'; did you mean '{nearest}'?"
    with pytest.raises(AttributeError) as caught:
        setattr(structure, misspelled, 1)
    assert str(caught.value) == sentence
    with pytest.raises(AttributeError) as caught:
        kind(**{misspelled: 1})
    assert str(caught.value) == sentence


def test_a_field_like_none_of_a_structure_s_is_refused_with_all_of_them() -> None:
    with pytest.raises(AttributeError) as caught:
        hbDSPSoftmaxParam().axis = 1
    assert str(caught.value) == "hbDSPSoftmaxParam has no field 'axis'; its fields are data_size, input."


def test_the_manual_s_other_spelling_of_a_field_is_that_field() -> None:
    scale = hbDNNQuantiScale()
    scale.zeropointLen = 3
    assert (scale.zeroPointLen, scale.zeropointLen) == (3, 3)
    ctrl = hbDNNInferCtrlParam()
    ctrl.Reserved2 = 4
    assert (ctrl.reserved2, ctrl.Reserved2) == (4, 4)
    scale.zeropointData = (ctypes.c_int8 * 3)(1, 2, 3)
    assert scale.zeroPointData[2] == scale.zeropointData[2] == 3


def test_a_print_shows_values_addresses_in_hex_and_what_pointers_hold() -> None:
    assert repr(hbDSPRpcCtrlParam(1, 0x400)) == (
        "hbDSPRpcCtrlParam(dspCoreId=1, rpcCmd=1024, priority=0, customId=0, reserved1=0, reserved2=0)"
    )
    assert repr(hbDSPSoftmaxParam(16, 0x8000_0000)) == "hbDSPSoftmaxParam(data_size=16, input=0x80000000)"
    assert repr(hbDSPCvFlipParam()).startswith("hbDSPCvFlipParam(src=hbVPImage(imageFormat=0, ")
    scale = hbDNNQuantiScale(1, (ctypes.c_float * 1)(0.5))
    assert repr(scale) == ("hbDNNQuantiScale(scaleLen=1, scaleData=c_float(0.5), zeroPointLen=0, zeroPointData=NULL)")
    assert "dimensionSize=[0, 0, 0, 0, 0, 0, 0, 0]" in repr(hbDNNTensorProperties())
    assert (repr(hbDSPTask_t()), repr(hbDSPTask_t(0xAB))) == ("hbDSPTask_t(NULL)", "hbDSPTask_t(0xab)")
    assert repr(remote_rpc_thread_params(3, 100)) == "remote_rpc_thread_params(domain=3, prio=100, stack_size=0)"
    assert repr(remote_arg(h=7)).startswith("remote_arg(buf=remote_buf(pv=0x7, nLen=0x0), h=7, h64=0x7, dma=")
    assert repr(hbDNNTaskHandle_t(7)) == "hbDNNTaskHandle_t(0x7)"


def test_the_fields_of_an_anonymous_member_are_those_of_its_structure() -> None:
    descriptor = fastrpc_async_descriptor(type=1)
    descriptor.context = 5
    assert (descriptor.cb.context, descriptor.context) == (5, 5)


def test_the_interpreter_adds_no_hint_of_its_own() -> None:
    with pytest.raises(AttributeError) as caught:
        hbSysMem().phyAdr = 1
    assert "".join(traceback.format_exception(caught.value)).lower().count("did you mean") == 1


def test_structures_go_on_being_copied_and_pickled() -> None:
    ctrl = hbDSPRpcCtrlParam(1, 0x400)
    for twin in (copy.copy(ctrl), copy.deepcopy(ctrl), pickle.loads(pickle.dumps(ctrl))):  # noqa: S301 - our own bytes
        assert bytes(twin) == bytes(ctrl)


def test_a_subclass_keeps_what_its_class_has_a_default_for() -> None:
    class Named(hbSysMem):
        label: str = ""

    block = Named(0x8000_0000)
    block.label = "weights"
    assert (block.label, block.phyAddr) == ("weights", 0x8000_0000)


def test_an_initializer_writes_all_of_a_structure() -> None:
    defaults = hbDSPRpcCtrlParam(1, 0x400, 7)
    ctrl = hbDSPRpcCtrlParam(*range(10, 16))
    initializer(defaults)(ctrl)
    assert bytes(ctrl) == bytes(defaults)
