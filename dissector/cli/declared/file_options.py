"""Options of the commands that write captures, and of those that read none."""

from __future__ import annotations

from pathlib import Path

from dissector.cli.declared.reading_options import (
    OutputOptions,
    PeriodOptions,
    ReadingOptions,
    SchemaSourceOptions,
)
from dissector.cli.declared.row_options import format_option
from dissector.cli.parsing.declarations import Options, option
from dissector.cli.presentation.completion import complete_api, complete_words
from dissector.file_roles import READS, WRITES
from dissector.protocol.field_roles import KEPT


class ExportOptions(PeriodOptions, OutputOptions, ReadingOptions):
    """The options of `export`."""

    connections: bool = option(
        "--connections", default=False, help="Write whole connections instead of single exchanges."
    )
    comments: bool = option(
        "--comments",
        default=False,
        help="Add findings, advice and events as comments of their packets, which Wireshark shows, "
        "and a summary as that of the file.",
    )
    redact: bool = option(
        "--redact",
        default=False,
        help="Replace names by pseudonyms, keys and values by filler. Sizes and times stay.",
    )
    keep: str | None = option(
        "--keep",
        default=None,
        metavar="KIND,...",
        complete=complete_words(lambda: KEPT),
        help=f"With --redact: leave names of these kinds unchanged. Kinds: {', '.join(KEPT)}.",
    )
    key: str | None = option(
        "--key",
        default=None,
        metavar="FILE",
        help="With --redact: a file with a secret of 16 bytes or more. The same key gives the same "
        "pseudonyms in other captures; by default each export has a random key.",
        role=READS,
    )
    map_file: str | None = option(
        "--map",
        default=None,
        metavar="FILE",
        help="With --redact: write the replaced names and their pseudonyms, for you only.",
        role=WRITES,
    )
    keep_schema: bool = option(
        "--keep-schema",
        default=False,
        help="With --redact: keys and values that decode (see --values) keep their structure; each "
        "text and each number in them is replaced.",
    )
    decrypt: bool = option(
        "--decrypt",
        default=False,
        help="With --redact: write connections that a key log opens as plain TCP. Without it they "
        "are left out.",
    )


class SchemaOptions(OutputOptions, SchemaSourceOptions):
    """The options of `schema`."""

    name: str | None = option(
        default=None, metavar="[API]", help="Name or key of an API.", complete=complete_api
    )
    version: int | None = option(default=None, metavar="[VERSION]", help="By default the newest.")
    form: str = format_option("text", "ndjson")


class DemoOptions(Options):
    """The options of `demo`."""

    save: Path | None = option(
        "--save",
        default=None,
        metavar="FILE",
        help="Only write the demo's capture to a file.",
        role=WRITES,
    )


class ConfigOptions(OutputOptions):
    """The options of `config`."""

    form: str = format_option("table", "ndjson")
    json_schema: bool = option(
        "--json-schema", default=False, help="Print the JSON schema of all settings, for editors."
    )
