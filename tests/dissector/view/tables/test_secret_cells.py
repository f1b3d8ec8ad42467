"""Rows hide what the login on their own connection showed, and any credential."""

from __future__ import annotations

import numpy as np
import pytest

from dissector.engine.tables.column_types import Coded, Column, Integers
from dissector.engine.tables.exchange_table import NONE
from dissector.engine.tables.logins import Logins
from dissector.protocol.embedded.secrecy.credentials import MASK
from dissector.view.tables.secret_cells import SecretCells, mask_cell

SECRET = "correct-horse-battery"
NAMES_IT, URL = f"consumer of {SECRET}", "http://me:sesame@host"
TEXTS = [NAMES_IT, NAMES_IT, "plain", None, URL, NAMES_IT]


def texts_of(column: Column) -> list[object]:
    assert isinstance(column, Coded)
    return [None if code == NONE else column.values[code] for code in column.codes.tolist()]


@pytest.mark.parametrize(
    ("connection", "last"),
    [
        (Integers(np.array([3, 9, 9, 9, 3, 9])), MASK),
        (Coded(np.array([0, 1, 1, 1, 0, NONE]), [3, 9]), NAMES_IT),
    ],
)
def test_a_row_hides_what_its_own_connection_showed(connection: Column, last: str) -> None:
    logins = Logins()
    logins.add(9, [SECRET.encode()])
    client_ids = Coded(np.array([0, 0, 1, NONE, 2, 0]), [NAMES_IT, "plain", URL])
    columns: dict[str, Column] = {"connection": connection, "client_id": client_ids}
    columns["status"] = client_ids  # not a text of a message
    hidden = SecretCells(lambda: logins, show_secrets=False).columns(columns)
    assert texts_of(hidden["client_id"]) == [NAMES_IT, MASK, "plain", None, MASK, last]
    assert texts_of(hidden["status"]) == texts_of(client_ids) == TEXTS
    assert SecretCells(lambda: logins, show_secrets=True).columns(columns) is columns


def test_rows_without_a_connection_hide_credentials() -> None:
    topics = {"topic": Coded(np.array([0, 1]), ["orders", URL])}
    (hidden,) = SecretCells(Logins, show_secrets=False).parts([topics])
    assert texts_of(hidden["topic"]) == ["orders", MASK]


def test_a_single_cell_is_hidden_as_in_columns() -> None:
    logins = Logins()
    logins.add(9, [SECRET.encode()])
    assert mask_cell("topics", (NAMES_IT, "plain"), logins.of(9)) == (MASK, "plain")
    assert mask_cell("topics", (NAMES_IT,), logins.of(3)) == (NAMES_IT,)
    assert mask_cell("status", NAMES_IT, logins.of(9)) == NAMES_IT
