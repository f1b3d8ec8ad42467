"""
Reads Apache Kafka traffic out of packet captures.

    from dissector import codec, dissect, open_capture

    for exchange in dissect("a.pcap"):
        print(exchange.api, exchange.status, exchange.latency_ms)

    open_capture("a.pcap").exchanges()   # a polars.DataFrame with the columns of `kafkashark pairs`
    codec(0, 9, "request").parse(body)   # a construct.Container
"""

from __future__ import annotations

from dissector.engine.capture import Capture, Options
from dissector.engine.exchange import Exchange
from dissector.errors import (
    CaptureError,
    DecodeError,
    DissectorError,
    EncodeError,
    FilterError,
    Problem,
)
from dissector.protocol.apis import Api, all_apis, api
from dissector.protocol.messages import Message, decode_request, decode_response
from dissector.public import codec, dissect, open_capture

__all__ = [
    "Api",
    "Capture",
    "CaptureError",
    "DecodeError",
    "DissectorError",
    "EncodeError",
    "Exchange",
    "FilterError",
    "Message",
    "Options",
    "Problem",
    "all_apis",
    "api",
    "codec",
    "decode_request",
    "decode_response",
    "dissect",
    "open_capture",
]
