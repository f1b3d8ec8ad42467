"""
Keyed hashes for hash tables with keys from a capture.

The key is a secret of the process: the author of a capture can't choose colliding addresses, which
would make each lookup as long as the table. No result may depend on a hash, and a table of another
process is rehashed before use.

Source: M. Dietzfelbinger, "Universal hashing and k-wise independent random variables" (1996).
"""

from __future__ import annotations

import os

import numpy as np

from dissector.capture.columns import Int64s
from dissector.kernel import device_function
from dissector.kernel.arrays import I64

_WORDS = 12
_MASK = (1 << 63) - 1
_LOW = 0xFFFFFFFF


def _new_secret() -> Int64s:
    return np.frombuffer(os.urandom(8 * _WORDS), np.int64) & _MASK | 1


SECRET: Int64s = _new_secret()
"""The key of the hashes below, in this process."""


@device_function
def hash_endpoints(
    secret: I64,
    network: int,
    high: int,
    low: int,
    port: int,
    to_high: int,
    to_low: int,
    to_port: int,
) -> int:
    """Return a hash of 32 bits of a direction between two endpoints in a network."""
    mixed = secret[0] + (low & _LOW) * secret[1] + (low >> 32 & _LOW) * secret[2]
    mixed += (high & _LOW) * secret[3] + (high >> 32 & _LOW) * secret[4]
    mixed += (to_low & _LOW) * secret[5] + (to_low >> 32 & _LOW) * secret[6]
    mixed += (to_high & _LOW) * secret[7] + (to_high >> 32 & _LOW) * secret[8]
    mixed += (port << 16 | to_port) * secret[9] + (network & _LOW) * secret[10]
    mixed &= _MASK
    spread: int = ((mixed ^ mixed >> 32) * secret[11] & _MASK) >> 31
    return spread


@device_function
def hash_key(secret: I64, key: int) -> int:
    """Return a hash of 32 bits of a number of 64 bits."""
    mixed = (secret[0] + (key & _LOW) * secret[1] + (key >> 32 & _LOW) * secret[2]) & _MASK
    spread: int = ((mixed ^ mixed >> 32) * secret[11] & _MASK) >> 31
    return spread
