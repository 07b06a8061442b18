"""Which bytes a copy touches, against a list of them all."""

from __future__ import annotations

from hypothesis import given, strategies as st

from dsp_server.detectors.page_faults import Span


@st.composite
def spans(draw: st.DrawFn) -> Span:
    """Flat ranges and rows, near one another."""
    start, row_bytes, num_rows = draw(st.integers(0, 40)), draw(st.integers(0, 12)), draw(st.integers(1, 5))
    if num_rows == 1:
        return Span(start, row_bytes)
    return Span(start, row_bytes, num_rows, row_bytes + draw(st.integers(1, 9)))


def bytes_of(span: Span) -> set[int]:
    rows = (span.start + row * span.pitch_bytes for row in range(span.num_rows))
    return {at for start in rows for at in range(start, start + span.row_bytes)}


@given(spans(), spans())
def test_the_first_common_byte_is_that_of_the_lists(one: Span, other: Span) -> None:
    assert one.first_common(other) == min(bytes_of(one) & bytes_of(other), default=None)


@given(spans(), st.integers(0, 120))
def test_a_span_holds_the_bytes_of_its_rows(span: Span, address: int) -> None:
    assert span.holds(address) == (address in bytes_of(span))
    assert span.first_from(address) == min((at for at in bytes_of(span) if at >= address), default=None)
    assert span.size_bytes == len(bytes_of(span))
