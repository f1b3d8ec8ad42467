"""Exchanges spilled to a file are read back unchanged."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dissector.engine.exchanges.captured_exchange import CapturedExchange
from dissector.engine.exchanges.stored_exchanges import ExchangeSpill

captured = st.builds(
    CapturedExchange,
    connection=st.integers(0, 5),
    client=st.just("c:1"),
    broker=st.just("b:2"),
    api_key=st.integers(-1, 100),
    api_version=st.integers(-1, 100),
    correlation_id=st.integers(-(2**31), 2**31 - 1),
    client_id=st.none() | st.text(max_size=3),
    request=st.binary(max_size=30),
    response=st.none() | st.binary(max_size=30),
    expects_response=st.booleans(),
    request_time_ns=st.integers(0, 2**62),
    response_time_ns=st.none() | st.integers(0, 2**62),
)


@given(st.lists(captured, max_size=8))
def test_spilled_exchanges_are_read_back(exchanges: list[CapturedExchange]) -> None:
    spool = ExchangeSpill()
    assert [spool.add(each) for each in exchanges] == list(range(len(exchanges)))
    for number in reversed(range(len(exchanges))):
        assert spool.get(number) == exchanges[number]
        assert spool.connection(number) == exchanges[number].connection
        assert spool.times_ns(number)[1] == exchanges[number].response_time_ns
    assert len(spool) == len(exchanges)
    spool.close()
