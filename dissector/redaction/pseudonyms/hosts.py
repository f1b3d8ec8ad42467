"""
Pseudonyms of addresses.

An address keeps the length of its usual notation, as messages hold it as text: each part of IPv4
keeps its number of digits, each group of IPv6 too, and zero groups stay. Loopback, unspecified and
multicast addresses stay.
"""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address, IPv6Address

from dissector.redaction.pseudonyms.permutation import Permutation

_V4_DIGITS = ((0, 10), (10, 100), (100, 256))
"""The parts of IPv4 addresses with one, two and three digits."""


def ipv4_pseudonym(permutation: Permutation, value: int) -> int:
    """Return the pseudonym of an IPv4 address."""
    if _is_special_v4(value):
        return value
    ranges = [next(r for r in _V4_DIGITS if part < r[1]) for part in value.to_bytes(4, "big")]
    bound = 1
    number = 0
    for part, (low, high) in zip(value.to_bytes(4, "big"), ranges, strict=True):
        bound *= high - low
        number = number * (high - low) + part - low

    def decode(number: int) -> int:
        parts = []
        for low, high in reversed(ranges):
            number, part = divmod(number, high - low)
            parts.append(part + low)
        return int.from_bytes(bytes(reversed(parts)), "big")

    label = f"ipv4 {ranges}"
    return decode(
        permutation.permute(label, number, bound, lambda each: not _is_special_v4(decode(each)))
    )


def _is_special_v4(value: int) -> bool:
    first = value >> 24
    return first in (0, 127) or first >= 224


def ipv6_pseudonym(permutation: Permutation, value: int) -> int:
    """Return the pseudonym of an IPv6 address; one with an embedded IPv4 address maps this."""
    if value >> 32 == 0xFFFF:
        return 0xFFFF << 32 | ipv4_pseudonym(permutation, value & 0xFFFFFFFF)
    if _is_special_v6(value):
        return value
    groups = [value >> shift & 0xFFFF for shift in range(112, -1, -16)]
    ranges = [_hex_range(each) for each in groups]
    bound, number = 1, 0
    for group, (low, high) in zip(groups, ranges, strict=True):
        bound *= high - low
        number = number * (high - low) + group - low

    def decode(number: int) -> int:
        found = 0
        for place, (low, high) in enumerate(reversed(ranges)):
            number, group = divmod(number, high - low)
            found |= (group + low) << 16 * place
        return found

    label = f"ipv6 {ranges}"
    return decode(
        permutation.permute(label, number, bound, lambda each: not _is_special_v6(decode(each)))
    )


def _hex_range(group: int) -> tuple[int, int]:
    """Return the groups with as many digits; zero stays."""
    return next(
        (low, high)
        for low, high in ((0, 1), (1, 16), (16, 256), (256, 4096), (4096, 65536))
        if group < high
    )


def _is_special_v6(value: int) -> bool:
    return value <= 1 or value >> 120 == 0xFF or value >> 32 == 0xFFFF


def address_pseudonym(permutation: Permutation, text: str) -> str | None:
    """Return the pseudonym of an address in its usual notation; None for any other text."""
    for address, pseudonym in ((IPv4Address, ipv4_pseudonym), (IPv6Address, ipv6_pseudonym)):
        try:
            value = address(text)
        except (AddressValueError, ValueError):
            continue
        if str(value) == text:
            return str(address(pseudonym(permutation, int(value))))
    return None


def is_address(text: str) -> bool:
    """Return whether a text is an address in its usual notation."""
    for address in (IPv4Address, IPv6Address):
        try:
            return str(address(text)) == text
        except (AddressValueError, ValueError):
            continue
    return False
