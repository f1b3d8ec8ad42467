"""
Cipher suites that can be decrypted.

Source: https://www.iana.org/assignments/tls-parameters (TLS Cipher Suites)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Mode = Literal["gcm", "chacha20", "ccm", "cbc"]

TAG_BYTES = 16
SHORT_TAG_BYTES = 8
"""Suites with names that end with CCM_8."""


@dataclass(frozen=True, slots=True)
class CipherSuite:
    """
    The record protection of a cipher suite.

    Attributes:
        number: Its code point.
        name: Its name at IANA.
        mode: How records are encrypted.
        key_bytes: Length of the AES or ChaCha20 key.
        hash_name: The hash of the key schedule.
        mac_name: The hash of the records' MAC; empty for AEAD.
        tag_bytes: Length of the tag of AEAD; 0 for CBC.
        is_tls13: Whether it belongs to TLS 1.3.
    """

    number: int
    name: str
    mode: Mode
    key_bytes: int
    hash_name: str
    mac_name: str = ""
    tag_bytes: int = TAG_BYTES
    is_tls13: bool = False


_EXCHANGES_GCM = {
    "RSA": (0x009C, 0x009D),
    "DHE_RSA": (0x009E, 0x009F),
    "DHE_DSS": (0x00A2, 0x00A3),
    "DH_anon": (0x00A6, 0x00A7),
    "ECDHE_ECDSA": (0xC02B, 0xC02C),
    "ECDHE_RSA": (0xC02F, 0xC030),
}
_CHACHA20 = {"ECDHE_RSA": 0xCCA8, "ECDHE_ECDSA": 0xCCA9, "DHE_RSA": 0xCCAA}
_CCM = {
    "RSA_WITH_AES_128_CCM": 0xC09C,
    "RSA_WITH_AES_256_CCM": 0xC09D,
    "DHE_RSA_WITH_AES_128_CCM": 0xC09E,
    "DHE_RSA_WITH_AES_256_CCM": 0xC09F,
    "RSA_WITH_AES_128_CCM_8": 0xC0A0,
    "RSA_WITH_AES_256_CCM_8": 0xC0A1,
    "DHE_RSA_WITH_AES_128_CCM_8": 0xC0A2,
    "DHE_RSA_WITH_AES_256_CCM_8": 0xC0A3,
    "ECDHE_ECDSA_WITH_AES_128_CCM": 0xC0AC,
    "ECDHE_ECDSA_WITH_AES_256_CCM": 0xC0AD,
    "ECDHE_ECDSA_WITH_AES_128_CCM_8": 0xC0AE,
    "ECDHE_ECDSA_WITH_AES_256_CCM_8": 0xC0AF,
}
_EXCHANGES_SHA1 = {
    "RSA": (0x002F, 0x0035),
    "DHE_DSS": (0x0032, 0x0038),
    "DHE_RSA": (0x0033, 0x0039),
    "DH_anon": (0x0034, 0x003A),
    "ECDHE_ECDSA": (0xC009, 0xC00A),
    "ECDHE_RSA": (0xC013, 0xC014),
    "ECDH_anon": (0xC018, 0xC019),
}
_CBC_SHA2 = {
    "RSA_WITH_AES_128_CBC_SHA256": 0x003C,
    "RSA_WITH_AES_256_CBC_SHA256": 0x003D,
    "DHE_DSS_WITH_AES_128_CBC_SHA256": 0x0040,
    "DHE_RSA_WITH_AES_128_CBC_SHA256": 0x0067,
    "DHE_DSS_WITH_AES_256_CBC_SHA256": 0x006A,
    "DHE_RSA_WITH_AES_256_CBC_SHA256": 0x006B,
    "DH_anon_WITH_AES_128_CBC_SHA256": 0x006C,
    "DH_anon_WITH_AES_256_CBC_SHA256": 0x006D,
    "ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": 0xC023,
    "ECDHE_ECDSA_WITH_AES_256_CBC_SHA384": 0xC024,
    "ECDHE_RSA_WITH_AES_128_CBC_SHA256": 0xC027,
    "ECDHE_RSA_WITH_AES_256_CBC_SHA384": 0xC028,
}


def _tls13() -> list[CipherSuite]:
    return [
        CipherSuite(0x1301, "TLS_AES_128_GCM_SHA256", "gcm", 16, "sha256", is_tls13=True),
        CipherSuite(0x1302, "TLS_AES_256_GCM_SHA384", "gcm", 32, "sha384", is_tls13=True),
        CipherSuite(
            0x1303, "TLS_CHACHA20_POLY1305_SHA256", "chacha20", 32, "sha256", is_tls13=True
        ),
        CipherSuite(0x1304, "TLS_AES_128_CCM_SHA256", "ccm", 16, "sha256", is_tls13=True),
        CipherSuite(
            0x1305, "TLS_AES_128_CCM_8_SHA256", "ccm", 16, "sha256", "", SHORT_TAG_BYTES, True
        ),
    ]


def _aead12() -> list[CipherSuite]:
    suites = []
    for exchange, (number_128, number_256) in _EXCHANGES_GCM.items():
        name = f"TLS_{exchange}_WITH_AES"
        suites += [
            CipherSuite(number_128, f"{name}_128_GCM_SHA256", "gcm", 16, "sha256"),
            CipherSuite(number_256, f"{name}_256_GCM_SHA384", "gcm", 32, "sha384"),
        ]
    for exchange, number in _CHACHA20.items():
        name = f"TLS_{exchange}_WITH_CHACHA20_POLY1305_SHA256"
        suites.append(CipherSuite(number, name, "chacha20", 32, "sha256"))
    for name, number in _CCM.items():
        key_bytes = 32 if "_256_" in name else 16
        tag_bytes = SHORT_TAG_BYTES if name.endswith("_8") else TAG_BYTES
        suites.append(CipherSuite(number, f"TLS_{name}", "ccm", key_bytes, "sha256", "", tag_bytes))
    return suites


def _cbc() -> list[CipherSuite]:
    suites = []
    for exchange, numbers in _EXCHANGES_SHA1.items():
        for number, key_bytes in zip(numbers, (16, 32), strict=True):
            name = f"TLS_{exchange}_WITH_AES_{key_bytes * 8}_CBC_SHA"
            suites.append(CipherSuite(number, name, "cbc", key_bytes, "sha256", "sha1", 0))
    for name, number in _CBC_SHA2.items():
        key_bytes = 32 if "_256_CBC" in name else 16
        hash_name = "sha384" if name.endswith("384") else "sha256"
        suites.append(CipherSuite(number, f"TLS_{name}", "cbc", key_bytes, hash_name, hash_name, 0))
    return suites


SUITES = {suite.number: suite for suite in (*_tls13(), *_aead12(), *_cbc())}
"""By their code points."""

TLS13_SUITES = tuple(suite for suite in SUITES.values() if suite.is_tls13)


def suite_name(number: int) -> str:
    """Return the name of a cipher suite, or its code point in hexadecimal."""
    suite = SUITES.get(number)
    return f"0x{number:04X}" if suite is None else suite.name
