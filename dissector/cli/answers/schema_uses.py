"""The command `kafkashark schemas`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from dissector.cli import capture_source
from dissector.cli.declared.answer_options import ValueUseOptions
from dissector.cli.live_input import accepts_live
from dissector.cli.output import check_parquet, write_rows
from dissector.cli.presentation.section_view import SectionView
from dissector.cli.presentation.table_options import given_times, with_times
from dissector.cli.records import decoded_rows
from dissector.column_catalogue import VALUE_USES
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.tables.column_types import Row
from dissector.engine.tables.columns_of import column_batches
from dissector.protocol.embedded.masking import is_secret_topic
from dissector.query.contents.value_uses import COLUMNS, DECODED, ValueUses

PRIORITY = (
    *("topic", "part", "schema", "format", "records", "undecoded", "writers", "readers"),
    *("first_time_ns", "before", "problem", "first_packet"),
)
"""The columns that a narrow terminal shows first."""

SHOWN = tuple(name for name in COLUMNS if name not in ("last_packet", "last_time_ns"))
"""Columns of the text table."""


@accepts_live
def schemas(given: ValueUseOptions) -> None:
    """Print which formats and schemas the keys and values of topics have."""
    check_parquet(given.form, given.output)
    view = SectionView.of({"schemas": ("schemas", COLUMNS)}, given, priority=PRIORITY)
    source = capture_source.source(given, given.selected, records=True)
    source.explains_no_kafka = True
    values = source.record_values()
    passing = source.selection.records

    def rows(exchange: Exchange) -> Iterator[Row]:
        return decoded_rows(passing(exchange), show_secrets=False)

    uses = ValueUses()
    parts = source.without_secrets(source.record_parts(is_secret_topic, rows), show_secrets=False)
    for columns in values.parts(parts, DECODED):
        uses.add(columns)
    found = view.arranged({"schemas": uses.rows()}, source.capture.logins.all)["schemas"]
    shown = view.tables["schemas"][1]
    written = SHOWN if shown == COLUMNS else shown
    parts = column_batches(view.selected("schemas", found))
    if given.form == "parquet":
        view.write_rows({"schemas": found}, given.form, given.output, VALUE_USES)
    else:
        default = "r" if given.form == "table" else None
        times = given_times(given, lambda: source.begin_ns, default)
        if times is not None and given.form != "ndjson":
            parts = with_times(parts, times)
        write_rows(parts, given.form, given.output, shown, written, layout=view.layout)
    view.report_left_out()
    if uses.is_cut:
        print("kafkashark: more schemas than can be counted", file=sys.stderr)
