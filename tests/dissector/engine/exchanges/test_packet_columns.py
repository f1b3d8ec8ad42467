from __future__ import annotations

import numpy as np

from dissector.engine.exchanges.packet_facts import PacketLengths
from dissector.engine.tables.exchange_table import NONE


def test_packet_lengths_are_kept_while_messages_may_end_there() -> None:
    lengths = PacketLengths()
    lengths.add(0, np.array([60, 70, 80]))
    lengths.add(3, np.array([90]))
    asked = np.array([2, 0, 3, NONE, 4])
    assert lengths.of(asked).tolist() == [80, 60, 90, NONE, NONE]
    lengths.drop_before(2)
    assert lengths.of(asked).tolist() == [80, 60, 90, NONE, NONE]
    lengths.drop_before(3)
    assert lengths.of(asked).tolist() == [NONE, NONE, 90, NONE, NONE]
