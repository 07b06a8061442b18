"""Scalar words, URIs and codes: the values of the public headers."""

import contextlib

import pytest
from hypothesis import given, strategies as st

from fastrpc.wire import uri
from fastrpc.wire.aee import DSP_ERROR, Aee, AeeError, name_of, of_status, on_dsp
from fastrpc.wire.message import HEAD, INVOKE, pack_invoke
from fastrpc.wire.scalars import Scalars, make, split
from tests.each import each


@each(
    "method, inputs, outputs, word",
    [(0, 3, 1, 0x0003_0100), (2, 3, 1, 0x0203_0100), (4, 2, 2, 0x0402_0200), (99, 1, 0, 0x1F01_0000)],
)
def test_words_of_the_reference(method: int, inputs: int, outputs: int, word: int) -> None:
    assert make(method, inputs, outputs) == word


@given(
    st.builds(
        Scalars,
        st.integers(0, 31),
        st.integers(0, 255),
        st.integers(0, 255),
        st.integers(0, 15),
        st.integers(0, 15),
        st.integers(0, 7),
    )
)
def test_a_word_says_what_it_was_made_of(scalars: Scalars) -> None:
    assert split(scalars.word()) == scalars


@each(
    "scalars, code",
    [
        (Scalars(0, 256, 0), Aee.AEE_EMAXBUFS),
        (Scalars(0, 0, 256), Aee.AEE_EMAXBUFS),
        (Scalars(0, 0, 0, 16), Aee.AEE_EMAXBUFS),
        (Scalars(0, 0, 0, 0, -1), Aee.AEE_EMAXBUFS),
        (Scalars(32, 0, 0), Aee.AEE_EBADPARM),
    ],
)
def test_what_a_word_cannot_say_is_refused(scalars: Scalars, code: Aee) -> None:
    with pytest.raises(AeeError) as refused:
        scalars.word()
    assert refused.value.code == code


def test_a_uri_names_skeleton_domain_and_session() -> None:
    written = uri.of_interface("calc")
    assert written == "file:///libcalc_skel.so?calc_skel_handle_invoke&_modver=1.0"
    assert uri.parse(written + "&_dom=cdsp1&_session=2") == ("libcalc_skel.so", "calc_skel_handle_invoke", 4, 2)
    assert uri.parse(written + uri.suffix(3, 1)).effective_domain == 11
    assert uri.parse(written, uri.DEFAULT_DOMAIN).domain == 3
    assert uri.split_domain(11) == (3, 1)


@each(
    "written, code",
    [
        ("", Aee.AEE_EBADPARM),
        ("calc", Aee.AEE_EBADPARM),
        (uri.of_interface("calc"), Aee.AEE_EBADPARM),
        (uri.of_interface("calc") + "&_dom=xdsp", Aee.AEE_EBADPARM),
        (uri.of_interface("calc") + "&_dom=cdsp&_session=x", Aee.AEE_EBADPARM),
        (uri.of_interface("calc") + "&_dom=cdsp&_session=4", Aee.AEE_ENOSESSION),
    ],
)
def test_a_uri_that_says_too_little_is_refused(written: str, code: Aee) -> None:
    with pytest.raises(AeeError) as refused:
        uri.parse(written)
    assert refused.value.code == code


@given(st.text())
def test_no_text_as_uri_raises_anything_else(text: str) -> None:
    for written in (text, f"file:///x?y&_dom=cdsp&_session={text}"):
        with contextlib.suppress(AeeError):
            uri.parse(written)


def test_codes_of_the_dsp_side_are_told_apart() -> None:
    assert (Aee.AEE_EWOULDBLOCK, Aee.AEE_ECONNRESET, Aee.AEE_EINTERRUPTED) == (516, 104, 46)
    assert on_dsp(Aee.AEE_EUNSUPPORTED) == 0x8000_0414
    signed = on_dsp(Aee.AEE_EBADPARM) - (1 << 32)
    assert of_status(signed) == DSP_ERROR + Aee.AEE_EBADPARM
    assert (of_status(-3), of_status(17)) == (-3, 17)
    assert name_of(0x8000_0414) == "AEE_EUNSUPPORTED from the DSP side, 0x80000414"
    assert str(AeeError(Aee.AEE_EINVHANDLE)) == "Invalid handle. [AEE_EINVHANDLE]"


def test_an_invocation_in_bytes() -> None:
    raw = pack_invoke(7, 0x0203_0100, [0x9000_0000, 64, 0, 0])
    assert len(raw) == 24 + 32
    assert HEAD.unpack_from(raw) == (INVOKE, 0x0203_0100, 7, 2, 0)
