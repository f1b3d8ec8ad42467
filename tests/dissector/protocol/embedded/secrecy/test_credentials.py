import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dissector.engine.facts.credential_kernel import may_hold_credential
from dissector.protocol.embedded.secrecy.credentials import holds_credential

CREDENTIALS = [
    "http://admin:sesame@host:8083/",
    "see sasl+tls://sesame@broker",
    "Authorization: Bearer sesame",
    "basic YWxpY2U6c2VzYW1l",
    "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.",
    "password=sesame",
    '{"secret":"sesame"}',
    "passphrase : 'sesame'",
    "PASSWD:sesame",
    "Endpoint=sb://x/;SharedAccessKey=sesame",
    "api_key=sesame",
    "Invalid value sesame for configuration ssl.key.password: too short",
    "Invalid value sesame for configuration somebody.elses: too short",
]

PLAIN = [
    "",
    "http://host:8083/connectors",
    "user@example.org",
    "SASL mechanism OAUTHBEARER authentication failed",
    "Bearer authentication is off",
    "basic authentication failed",
    "Invalid value -3 for configuration retention.ms: at least -1",
    "the token has expired",
    "fe80::1:9092",
    "User:alice",
    "password",
]


@pytest.mark.parametrize("text", CREDENTIALS)
def test_a_credential_in_text_is_found(text: str) -> None:
    assert holds_credential(text)
    assert holds_credential(b"\0\xff" + text.encode() + b"\xfe")
    assert holds_credential("x" * 5000 + " " + text)


@pytest.mark.parametrize("text", PLAIN)
def test_plain_text_has_no_credential(text: str) -> None:
    assert not holds_credential(text)


WORDS = st.sampled_from(
    [
        *("eyJ", "eyJhbGci", ".", "://", "@", ":", "=", " ", "\t", "'", '"', "bearer", "Basic"),
        *("password", "passphrase", "token", "signature", "credentials", "access-key", "sesame"),
        *("invalid value", "for configuration", "x.y", "é", "4711"),
    ]
)


@given(st.lists(WORDS, max_size=8).map("".join) | st.text(max_size=30))
@example("".join(CREDENTIALS))
def test_the_quick_check_misses_no_credential(text: str) -> None:
    data = np.frombuffer(b"<" + text.encode("utf-8", "surrogateescape") + b">", np.uint8)
    if holds_credential(text):
        assert may_hold_credential(data, 1, len(data) - 2)


@pytest.mark.parametrize("text", CREDENTIALS)
def test_the_quick_check_reads_only_its_text(text: str) -> None:
    data = np.frombuffer(b"plain" + text.encode() + b"plain", np.uint8)
    assert may_hold_credential(data, 5, len(text))
    assert not may_hold_credential(data, 0, 5)
    assert not may_hold_credential(data, 5 + len(text), 5)
