"""
The sponge of SHAKE-256 inside kernels: as Python slow, compiled some hundred times as fast.

Source: FIPS 202 (Keccak-f[1600], 3.2 and 3.3; SHAKE256, 6.2).
"""

from __future__ import annotations

from dissector.kernel.arrays import I64, U8
from dissector.kernel.decorators import device_function

LANES = 25
RATE = 136
"""Bytes of a block of SHAKE-256."""

_ROUNDS = 24
_MASK = (1 << 64) - 1


@device_function
def absorb(state: I64, block: U8) -> None:
    """Add a block of `RATE` bytes to the state of `LANES` numbers, and permute that."""
    _absorb_in_python(state, block)


def _absorb_in_python(state: I64, block: U8) -> None:
    lanes = [each & _MASK for each in state]
    for lane in range(RATE // 8):
        lanes[lane] ^= int.from_bytes(block[lane * 8 : lane * 8 + 8], "little")
    lfsr = 1
    for _ in range(_ROUNDS):
        lanes = _mixed(lanes)
        for bit in range(7):
            lanes[0] ^= (lfsr & 1) << (1 << bit) - 1
            lfsr = lfsr << 1 ^ (0x171 if lfsr >> 7 else 0)
    for lane in range(LANES):
        state[lane] = (lanes[lane] ^ 1 << 63) - (1 << 63)


def _mixed(lanes: list[int]) -> list[int]:
    """Return the state after the steps theta, rho, pi and chi; lane x + 5y."""
    sums = [
        lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20] for x in range(5)
    ]
    added = [sums[(x + 4) % 5] ^ _rotated(sums[(x + 1) % 5], 1) for x in range(5)]
    lanes = [each ^ added[at % 5] for at, each in enumerate(lanes)]
    x, y, moved = 1, 0, lanes[:]
    for step in range(24):
        x_next, y_next = y, (2 * x + 3 * y) % 5
        moved[x_next + 5 * y_next] = _rotated(lanes[x + 5 * y], (step + 1) * (step + 2) // 2 % 64)
        x, y = x_next, y_next
    rows = range(0, LANES, 5)
    return [
        moved[row + x] ^ (~moved[row + (x + 1) % 5] & _MASK & moved[row + (x + 2) % 5])
        for row in rows
        for x in range(5)
    ]


def _rotated(lane: int, count: int) -> int:
    return (lane << count | lane >> 64 - count) & _MASK
