import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dissector.engine.facts.credential_kernel import may_hold_credential
from dissector.protocol.embedded.secrecy.credentials import holds_credential

NO_SIGNS = np.zeros(0, np.uint8)

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
    "-----BEGIN PRIVATE KEY-----\\nMIIsesame",
    "-----BEGIN RSA PRIVATE KEY-----",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----",
    "-----BEGIN%20EC%20PRIVATE%20KEY-----",
    r"{\"password\": \"sesame\"}",
    r"{\\\"password\\\":\\\"sesame\\\"}",
    r"{\u0022secret\u0022:\u0022sesame\u0022}",
    '{"name": "connection.password", "value": "sesame"}',
    "- name: DB_PASSWORD\n  value: sesame",
    "<password>sesame</password>",
    "<db:Password encrypted='no'> sesame</db:Password>",
    "<login user='a' password='sesame'/>",
    '<entry key="password">sesame</entry>',
    '<property name="db.password" value="sesame"/>',
    "&lt;password&gt;sesame",
    "&amp;lt;password&amp;gt;sesame",
    "password=&quot;sesame&quot;",
    "password%3Dsesame",
    "password%253Dsesame",
    "%22password%22%3A%22sesame%22",
    "http%3A%2F%2Fadmin%3Asesame%40host",
    "java -jar x --password sesame",
    "--db-password=sesame",
    '["--token", "sesame"]',
    "'--token','sesame'",
    "curl -u admin:sesame http://host",
    "https://x.blob.core.windows.net/a?sv=2022&sig=sesame%2Bsesame",
    "basic.auth.user.info=admin:sesame",
    "pass: sesame",
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
    "-----BEGIN CERTIFICATE-----",
    "--topic orders --group billing",
    "<topic>orders</topic>",
    "sig=1",
    "100%",
    "a%20b%3Dc",
    "compass=north",
    "consumer-1-6f2a8b1c-8a2e-4e0c-9c3b-0d0c5a1f2b3c",
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
        *("\\", "\\u0022", "%3D", "%2525", "&quot;", "&lt;", "<", ">", "value", ",", "--", "sig"),
        *("-----BEGIN", "private key", "-u"),
    ]
)


@given(st.lists(WORDS, max_size=8).map("".join) | st.text(max_size=30))
@example("".join(CREDENTIALS))
def test_the_quick_check_misses_no_credential(text: str) -> None:
    data = np.frombuffer(b"<" + text.encode("utf-8", "surrogateescape") + b">", np.uint8)
    if holds_credential(text):
        assert may_hold_credential(data, 1, len(data) - 2, NO_SIGNS)


HOSTILE = [
    *("\\", "%25", "&amp;", "<", "<a", "<" + 64 * "a", "://", "--", "--a-", "password", '"', " "),
    *("<password ", "eyJ", "basic ", "invalid value for ", "password,", "password value", "a:"),
    *("\\\\u00", "-u a"),
]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_searched_in_linear_time(text: str) -> None:
    """A quadratic search would take an hour, and the test's limit is minutes."""
    holds_credential(text * (100_000 // len(text)))


@pytest.mark.parametrize("text", CREDENTIALS)
def test_the_quick_check_reads_only_its_text(text: str) -> None:
    data = np.frombuffer(b"plain" + text.encode() + b"plain", np.uint8)
    assert may_hold_credential(data, 5, len(text), NO_SIGNS)
    assert not may_hold_credential(data, 0, 5, NO_SIGNS)
    assert not may_hold_credential(data, 5 + len(text), 5, NO_SIGNS)
