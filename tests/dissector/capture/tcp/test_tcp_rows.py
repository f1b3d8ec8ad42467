from __future__ import annotations

from dataclasses import fields
from typing import get_type_hints

import numpy as np

from dissector.capture.columns import NEVER
from dissector.capture.tcp import tcp_rows, waiting_rows
from dissector.capture.tcp.connections import Side
from dissector.kernel.named_rows import NamedRow, dtype_of, row_of


def test_loss_counters_have_the_names_of_sides() -> None:
    names = [*get_type_hints(tcp_rows.StreamRow), *get_type_hints(tcp_rows.LossRow)]
    assert {field.name for field in fields(Side)} - {"acked_not_captured"} <= set(names)


def test_each_field_is_explained() -> None:
    ours = {tcp_rows.__name__, waiting_rows.__name__}
    rows = [row for row in NamedRow.__subclasses__() if row.__module__ in ours]
    assert rows
    for row in rows:
        explained = [line.split(":")[0].strip() for line in (row.__doc__ or "").splitlines()]
        assert set(get_type_hints(row)) <= set(explained), row


def test_all_fields_are_initialised() -> None:
    row = dtype_of(tcp_rows.StreamRow)
    stream = np.full(row.itemsize // 8, 7, np.int64).view(row).reshape(())
    tcp_rows.clear_stream(row_of(stream, tcp_rows.StreamRow))
    unset = {"next", "first", "acked", "first_acked", "fin", "timed", "closed_ns", "resent_ns"}
    initial = dict.fromkeys(unset, tcp_rows.NONE) | dict.fromkeys(
        ("handshake_ns", "srtt_ns", "least_ns"), -1
    )
    assert all(stream[name] == initial.get(name, 0) for name in row.names or ())
    side = np.full((), 7, np.int64).repeat(8).view(dtype_of(waiting_rows.WaitingSide)).reshape(())
    waiting_rows.clear_waiting_side(row_of(side, waiting_rows.WaitingSide))
    assert side.tolist() == (0, 0, 0, 0, 0, 0, 0, NEVER)
