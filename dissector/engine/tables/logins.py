"""Secrets that the logins of a capture show, by connection: their repetitions are masked."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from dissector.protocol.login_secrets import (
    NOTHING_KNOWN,
    SIGN_BITS,
    KnownSecrets,
    SecretsOfAll,
    sign_of,
)

MAX_CONNECTIONS = 65_536
"""Connections with known secrets; the ones that logged in last are kept."""

NO_SIGNS: NDArray[np.uint8] = np.zeros(0, np.uint8)


class Logins:
    """
    The secrets of all connections.

    Attributes:
        signs: A byte for each sign, 1 where a secret has it; empty without secrets.
    """

    def __init__(self) -> None:
        self.signs = NO_SIGNS
        self._known: dict[int, KnownSecrets] = {}
        self._all: SecretsOfAll | None = None

    def of(self, connection: int) -> KnownSecrets:
        """Return the secrets known of a connection."""
        return self._known.get(connection, NOTHING_KNOWN)

    @property
    def all(self) -> SecretsOfAll:
        """The secrets of all connections."""
        if self._all is None:
            self._all = SecretsOfAll(list(self._known.values()))
        return self._all

    def retain(self, new_numbers: NDArray[np.int64]) -> None:
        """Give connections their new numbers; a negative one drops it."""
        numbers = {
            number: int(new_numbers[number]) for number in self._known if number < len(new_numbers)
        }
        self._known = {new: self._known[number] for number, new in numbers.items() if new >= 0}
        self._all = None

    def add(self, connection: int, secrets: Iterable[bytes]) -> None:
        """Add secrets of a connection."""
        # Other threads read: what was known stays known in between.
        known = KnownSecrets((*self.of(connection).secrets, *secrets))
        self._known[connection] = known
        self._all = None
        if len(self._known) > MAX_CONNECTIONS:
            del self._known[next(iter(self._known))]
        signs = self.signs if len(self.signs) else np.zeros(1 << SIGN_BITS, np.uint8)
        for form in known.forms():
            signs[sign_of(form)] = 1
        self.signs = signs
