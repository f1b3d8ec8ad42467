from __future__ import annotations

import ipaddress

import pytest

from dissector.capture.addresses import address_text, endpoint_text


@pytest.mark.parametrize(
    ("number", "text", "endpoint"),
    [
        ("::ffff:10.0.0.1", "10.0.0.1", "10.0.0.1:9092"),
        ("fd00::1", "fd00::1", "[fd00::1]:9092"),
        ("::", "::", "[::]:9092"),
        ("::10.0.0.1", "::a00:1", "[::a00:1]:9092"),
        ("2001:db8:0:1::", "2001:db8:0:1::", "[2001:db8:0:1::]:9092"),
    ],
)
def test_addresses_have_their_canonical_form(number: str, text: str, endpoint: str) -> None:
    high, low = divmod(int(ipaddress.IPv6Address(number)), 1 << 64)
    assert address_text(high, low) == text
    assert endpoint_text(high, low, 9092) == endpoint
