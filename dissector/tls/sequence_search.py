"""
Search for sequence numbers of TLS 1.3 records after an unknown number of lost records.

The additional data of such a record is its header: the sequence number is in the nonce alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint32]

_GCM_TAG_BYTES = 16
_FIRST_COUNTER = (1).to_bytes(4, "big")

_LAST_BYTES = (0, 21, 22, 23)
"""
Possible last bytes of a record's plaintext: padding, or the content type of an alert, a handshake
message or data.
"""

_CHUNK = 1 << 12
"""Number of sequence numbers tried at once: a batch fits into the cache."""

_SIGMA = np.frombuffer(b"expand 32-byte k", "<u4")

_MOST = 1 << 64


def gcm_sequence(aead: AESGCM, key: bytes, iv: bytes, header: bytes, body: bytes) -> int | None:
    """
    Return the sequence number that AES-GCM's tag implies, in constant time; None with a wrong key.

    The tag is GHASH(header, ciphertext) xor AES(nonce, 1), and GHASH does not depend on the nonce:
    encryption to the same ciphertext under a nonce that we choose shows it. The decrypted rest of
    the tag is the nonce.

    Source: NIST SP 800-38D section 7.1
    """
    ciphertext, tag = body[:-_GCM_TAG_BYTES], body[-_GCM_TAG_BYTES:]
    size = len(ciphertext)
    keystream = aead.encrypt(iv, bytes(size), header)[:size]
    encrypted = aead.encrypt(iv, _xor(ciphertext, keystream), header)
    block = Cipher(algorithms.AES(key), modes.ECB())
    masked = _xor(encrypted[size:], block.encryptor().update(iv + _FIRST_COUNTER))
    first_block = block.decryptor().update(_xor(masked, tag))
    if first_block[12:] != _FIRST_COUNTER:
        return None
    sequence = int.from_bytes(first_block[:12], "big") ^ int.from_bytes(iv, "big")
    return sequence if sequence < _MOST else None


class LastByte:
    """
    Finds sequence numbers that make the last byte of a record plausible.

    That costs one block of the key stream for each number, and leaves one of 64 for the tag.
    """

    def __init__(
        self, key: bytes, iv: bytes, body: bytes, tag_bytes: int, is_chacha20: bool
    ) -> None:
        self._key, self._iv = key, iv
        last = len(body) - tag_bytes - 1
        self._block_bytes = 64 if is_chacha20 else 16
        self._counter = 1 + last // self._block_bytes
        self._offset = last % self._block_bytes
        allowed = np.zeros(256, np.bool_)
        allowed[[each ^ body[last] for each in _LAST_BYTES]] = True
        self._allowed = allowed
        self._is_chacha20 = is_chacha20

    def candidates(self, first: int, count: int) -> Iterator[int]:
        """Yield the plausible numbers among `count` from `first` on, upwards."""
        end = min(first + count, _MOST - 1)
        for start in range(first, end, _CHUNK):
            nonces = self._nonces(start, min(_CHUNK, end - start))
            stream = self._chacha20(nonces) if self._is_chacha20 else self._ccm(nonces)
            for hit in np.flatnonzero(self._allowed[stream]).tolist():
                yield start + hit

    def _nonces(self, start: int, count: int) -> Bytes:
        """Return the nonces of sequence numbers as rows of 12 bytes."""
        rows = np.empty((count, 12), np.uint8)
        rows[:] = np.frombuffer(self._iv, np.uint8)
        numbers = np.uint64(start) + np.arange(count, dtype=np.uint64)
        rows[:, 4:] ^= numbers.astype(">u8").view(np.uint8).reshape(count, 8)
        return rows

    def _ccm(self, nonces: Bytes) -> Bytes:
        """Return a byte of the key stream of AES-CCM for each nonce (RFC 3610 section 2.3)."""
        blocks = np.empty((len(nonces), 16), np.uint8)
        blocks[:, 0] = 2
        blocks[:, 1:13] = nonces
        blocks[:, 13:] = np.frombuffer(self._counter.to_bytes(3, "big"), np.uint8)
        encryptor = Cipher(algorithms.AES(self._key), modes.ECB()).encryptor()
        stream = np.frombuffer(encryptor.update(blocks.tobytes()), np.uint8)
        return stream.reshape(len(nonces), 16)[:, self._offset]

    def _chacha20(self, nonces: Bytes) -> Bytes:
        """Return a byte of the key stream of ChaCha20 for each nonce (RFC 8439 section 2.3)."""
        words = np.empty((16, len(nonces)), np.uint32)
        words[:4] = _SIGMA[:, np.newaxis]
        words[4:12] = np.frombuffer(self._key, "<u4")[:, np.newaxis]
        words[12] = self._counter
        words[13:] = nonces.view("<u4").T
        word, byte = divmod(self._offset, 4)
        last: Bytes = (_chacha20_word(words, word) >> np.uint32(8 * byte)).astype(np.uint8)
        return last


def _chacha20_word(words: Words, chosen: int) -> Words:
    """
    Return one word of ChaCha20 blocks, of many at once.

    A call of `cryptography` for each block takes eight times as long. The result only selects the
    sequence numbers that `cryptography` tries.

    Args:
        words: The 16 words of each block's initial state, as rows.
        chosen: Which word.
    """
    a, b, c, d = words.reshape(4, 4, -1).copy()
    spare = np.empty_like(a)
    for half in range(20):
        for target, source, changed, bits in (
            (a, b, d, 16),
            (c, d, b, 12),
            (a, b, d, 8),
            (c, d, b, 7),
        ):
            target += source
            changed ^= target
            np.left_shift(changed, bits, out=spare)
            changed >>= 32 - bits
            changed |= spare
        rotation = 1 if half % 2 == 0 else -1
        b, c, d = np.roll(b, -rotation, 0), np.roll(c, 2, 0), np.roll(d, rotation, 0)
    mixed: Words = (a, b, c, d)[chosen // 4][chosen % 4] + words[chosen]
    return mixed


def _xor(left: bytes, right: bytes) -> bytes:
    number = int.from_bytes(left, "big") ^ int.from_bytes(right, "big")
    return number.to_bytes(len(left), "big")
