"""Pseudonyms keep length and kind of the original, and are one to one."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture.addresses import IPV4_MAPPED
from dissector.redaction.pseudonyms.pseudonyms import Pseudonyms
from dissector.redaction.pseudonyms.texts import class_of

NAMES = Pseudonyms(b"a key of the test")


def bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


@given(st.text(min_size=1, max_size=40))
def test_a_text_keeps_its_bytes_and_its_class(text: str) -> None:
    pseudonym = NAMES.name(text)
    assert len(bytes_of(pseudonym)) == len(bytes_of(text))
    assert class_of(pseudonym) == class_of(text)


@given(st.text("abcdefghijklmnopqrstuvwxyz0123456789ABC._-", min_size=1, max_size=249))
def test_a_valid_topic_name_stays_valid(text: str) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", NAMES.name(text))


def test_short_names_are_one_to_one() -> None:
    names = [*map(chr, range(33, 127)), *(f"a{n}" for n in range(100))]
    assert len({NAMES.name(name) for name in names}) == len(names)


def test_a_long_text_depends_on_its_end() -> None:
    assert NAMES.name("x" * 400 + "y") != NAMES.name("x" * 401)
    assert len(NAMES.name("x" * 400)) == 400


@pytest.mark.parametrize("name", ["__consumer_offsets", "kafka-cluster", "librdkafka", ""])
def test_names_of_kafka_are_kept(name: str) -> None:
    assert NAMES.name(name) == name


@pytest.mark.parametrize("word", ["range", "SASL_SSL", "user", "Stable"])
def test_keywords_of_kafka_are_kept_in_their_fields(word: str) -> None:
    """A topic may also have such a name."""
    assert NAMES.word(word) == word
    assert NAMES.name(word) != word


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_keeps_its_length(address: IPv4Address) -> None:
    text = NAMES.host(str(address))
    assert len(text) == len(str(address))
    assert NAMES.raw_address(address.packed) == IPv4Address(text).packed
    assert NAMES.address(0, IPV4_MAPPED | int(address)) == (0, IPV4_MAPPED | int(IPv4Address(text)))


@given(st.ip_addresses(v=6).filter(lambda each: each.ipv4_mapped is None))
def test_an_ipv6_address_keeps_its_length(address: IPv6Address) -> None:
    text = NAMES.host(str(address))
    assert len(text) == len(str(address))
    assert NAMES.raw_address(address.packed) == IPv6Address(text).packed


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "0.0.0.0", "*", "/127.0.0.1"])
def test_well_known_hosts_are_kept(host: str) -> None:
    assert NAMES.host(host) == host


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("demo.orders-1", r"[a-z0-9]{4}\.[a-z0-9]{6}-[a-z0-9]"),
        ("Demo_Orders", r"[a-zA-Z0-9]{4}_[a-zA-Z0-9]{6}"),
        ("2024.11", r"[0-9]{4}\.[0-9]{2}"),
    ],
)
def test_separators_are_kept(name: str, form: str) -> None:
    assert re.fullmatch(form, NAMES.name(name))
    assert NAMES.name(name) != name


def test_a_name_has_the_same_pseudonym_as_host_and_as_program() -> None:
    for name in ("acme-7", "Acme"):
        assert NAMES.host(name) == NAMES.name(name) == NAMES.software(name)


def test_a_host_keeps_its_dots() -> None:
    host = NAMES.host("broker-1.corp.example.com")
    assert re.fullmatch(r"[a-z0-9]{6}-[a-z0-9]\.[a-z0-9]{4}\.[a-z0-9]{7}\.[a-z0-9]{3}", host)
    assert NAMES.host("/10.1.2.3") == "/" + NAMES.host("10.1.2.3")


@given(st.uuids())
def test_an_id_has_the_same_pseudonym_as_bytes_and_as_text(value: UUID) -> None:
    import base64

    text = base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    new = NAMES.uuid(value.bytes)
    assert base64.urlsafe_b64decode(NAMES.base64_id(text) + "==") == new


def test_ids_of_kafka_are_kept() -> None:
    for number in (0, 1, 2):
        assert NAMES.uuid(UUID(int=number).bytes) == UUID(int=number).bytes
    assert NAMES.producer_id(-1) == -1
    assert len({NAMES.producer_id(number) for number in range(1000)}) == 1000


def test_content_marks_depend_on_all_bytes() -> None:
    long = NAMES.content(b"x" * 100 + b"1"), NAMES.content(b"x" * 100 + b"2")
    assert long[0] != long[1]
    assert long[0][8:] == long[1][8:]
    assert NAMES.content(b"") == b""
    assert len(NAMES.content(b"abc")) == 3


def test_a_regex_becomes_a_regex() -> None:
    assert NAMES.regex("orders-.*") == "redacted-"
    assert NAMES.regex("a" * 12) == "redacted-red"


def test_a_principal_keeps_its_type() -> None:
    assert NAMES.principal("User:alice") == f"User:{NAMES.name('alice')}"
    assert NAMES.principal("User:*") == "User:*"
    assert NAMES.principal("alice") == NAMES.name("alice")


def test_replaced_names_are_listed() -> None:
    names = Pseudonyms(b"a key of the test")
    new = names.name("orders")
    names.word("range")
    assert list(names.replaced()) == [("orders", new)]


def test_macs_are_local() -> None:
    mac = NAMES.mac(bytes.fromhex("001122334455"))
    assert mac[0] & 3 == 2
    assert NAMES.mac(bytes(6)) == bytes(6)
