"""Software of clients and versions of brokers, from ApiVersions."""

from __future__ import annotations

import io

from dissector import open_capture
from dissector.summary.version_offers import VersionOffers
from tests.dissector.cli.cli_traffic import API_VERSIONS, request_frame, response_frame
from tests.tcp_captures import Wire, pcap_file

SOFTWARE = {"client_software_name": "lib", "client_software_version": "1"}


def read(wire: Wire) -> VersionOffers:
    capture = open_capture("-", stdin=io.BytesIO(pcap_file(wire.packets)))
    offers = VersionOffers(capture)
    for window in capture.windows():
        offers.observe(window)
    return offers


def test_each_connection_has_its_software() -> None:
    wire = Wire()
    for number in range(3):
        connection = wire.connect(port=50000 + number).syn()
        version, values = (0, {}) if number == 1 else (3, SOFTWARE)
        connection.client(request_frame(API_VERSIONS, version, 1, **values))
        ranges = [{"api_key": 18, "min_version": 0, "max_version": number}]
        connection.broker(response_frame(API_VERSIONS, version, 1, api_keys=ranges))
    offers = read(wire)
    assert [offers.software_of(number) for number in range(4)] == [
        ("lib", "1"),
        (None, None),
        ("lib", "1"),
        (None, None),
    ]
    assert offers.offers == {"10.0.0.2:9092": {18: (0, 2)}}


def test_a_refused_version_has_software_and_ranges() -> None:
    """Source: KIP-511: the response has the layout of v0."""
    connection = (wire := Wire()).connect().syn()
    connection.client(request_frame(API_VERSIONS, 4, 1, **SOFTWARE))
    ranges = [{"api_key": 18, "min_version": 0, "max_version": 3}]
    connection.broker(response_frame(API_VERSIONS, 0, 1, error_code=35, api_keys=ranges))
    offers = read(wire)
    assert offers.software_of(0) == ("lib", "1")
    assert offers.offers == {"10.0.0.2:9092": {18: (0, 3)}}


def test_undecodable_bytes_are_ignored() -> None:
    connection = (wire := Wire()).connect().syn()
    good = request_frame(API_VERSIONS, 3, 1, **SOFTWARE)
    connection.client(good[:-7] + b"\x7f" + good[-6:])
    connection.broker(response_frame(API_VERSIONS, 3, 1))
    offers = read(wire)
    assert (offers.software, offers.offers) == ({}, {})


def test_a_name_with_invalid_utf8() -> None:
    connection = (wire := Wire()).connect().syn()
    values = {"client_software_name": "caf\udce9", "client_software_version": ""}
    connection.client(request_frame(API_VERSIONS, 3, 1, **values))
    assert read(wire).software_of(0) == ("caf\\xe9", None)
