"""Options of the commands that print rows: their format, columns, order and number."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from dissector.cli.declared.reading_options import (
    CopyOptions,
    LiveOptions,
    OutputOptions,
    PeriodOptions,
    ReadingOptions,
    SecretOptions,
)
from dissector.cli.parsing.declarations import Options, option
from dissector.cli.presentation.completion import complete_columns
from dissector.file_roles import READS, Writes
from dissector.view.text.time_style import STYLES

if TYPE_CHECKING:
    from dissector.cli.parsing.declarations import Command

ROW_FORMATS = ("table", "ndjson", "csv", "parquet")
MESSAGE_FORMATS = ("text", "ndjson", "fields", "parquet", "json", "ek")
COLORS = ("auto", "always", "never")

STREAM_FILES = r"\d+-[ab]\.bin"
"""Names of the files of `streams --write`, as a regular expression."""


def format_option(*formats: str) -> Any:
    """Declare the option -T with some formats; the first one is the default."""
    return option(
        *("-T", "--format"),
        default=formats[0],
        metavar="FORMAT",
        choices=formats,
        help="|".join(formats),
    )


def _print_columns(command: Command) -> None:
    from dissector.cli.presentation.listing import print_columns

    print_columns(command.name)


def _print_fields(command: Command) -> None:
    from dissector.cli.presentation.listing import print_fields

    print_fields(command.name)


class ColorOptions(Options):
    """Whether output is coloured."""

    heading: ClassVar[str] = "Rows"

    color: str = option(
        "--color",
        setting="shared",
        default="auto",
        metavar="|".join(COLORS),
        choices=COLORS,
        help="Colour errors; auto: on a terminal, unless NO_COLOR is set.",
    )


class LimitOptions(Options):
    """The number of rows."""

    heading: ClassVar[str] = "Rows"

    limit: int | None = option(
        *("-c", "--limit", "--top"),
        default=None,
        metavar="N",
        least=1,
        help="Print at most N rows, of each section if there are several, then exit.",
    )


class ColumnOptions(LimitOptions, ColorOptions):
    """The columns of rows, their number, and colour."""

    heading: ClassVar[str] = "Rows"

    columns: str | None = option(
        "--columns",
        setting="own",
        default=None,
        metavar="NAME,NAME",
        complete=complete_columns,
        help="Print these columns: any of --list-columns, or a field such as request.acks.",
    )
    fields: tuple[str, ...] = option(
        "-e",
        default=(),
        metavar="NAME",
        complete=complete_columns,
        help="As --columns, for one name; may be repeated.",
    )
    list_columns: bool = option(
        "--list-columns", default=False, instead=_print_columns, help="List the columns, and end."
    )
    list_fields: bool = option(
        "--list-fields",
        default=False,
        instead=_print_fields,
        help="List names for -Y, and end.",
    )


class SortOptions(Options):
    """The order of rows."""

    heading: ClassVar[str] = "Rows"

    sort: str | None = option(
        "--sort",
        setting="own",
        default=None,
        metavar="[-]COLUMN,...",
        complete=complete_columns,
        help="Sort the rows, in memory; - before a column: descending.",
    )


class TimeOptions(Options):
    """The form of times."""

    heading: ClassVar[str] = "Rows"

    times: str | None = option(
        *("-t", "--times"),
        setting="shared",
        default=None,
        metavar="|".join(STYLES),
        choices=tuple(STYLES),
        help="Form of times in text and tables, as tshark's: "
        + ", ".join(f"{key} {meaning}" for key, meaning in STYLES.items()),
    )
    utc: bool = option("--utc", default=False, setting="shared", help="-t a and -t ad in UTC.")


class TableOptions(
    PeriodOptions,
    OutputOptions,
    ColumnOptions,
    TimeOptions,
    ReadingOptions,
    CopyOptions,
    SecretOptions,
    LiveOptions,
):
    """The options of commands with one table."""

    form: str = format_option(*ROW_FORMATS)


class MessageOptions(TableOptions):
    """The options of `dissect`."""

    form: str = format_option(*MESSAGE_FORMATS)
    verbose: bool = option(
        *("-V", "--tree"), default=False, help="Print every field with its place in the bytes."
    )
    bytes_too: bool = option(*("-x", "--hex"), default=False, help="Print the bytes.")
    field_layout: tuple[str, ...] = option(
        "-E",
        default=(),
        metavar="NAME=VALUE",
        help="With -T fields, as tshark: separator=, or /t or /s, aggregator=; header=y, "
        "quote=d|s|n, occurrence=f|l|a. May be given more than once.",
    )


class RowOptions(SortOptions, TableOptions):
    """The options of `records`, and those that are the same for all rows."""


class RecordOptions(RowOptions):
    """The options of `records`."""

    values_as: str = option(
        "--values-as",
        default="text",
        metavar="text|struct",
        choices=("text", "struct"),
        help="struct: with -T parquet -o DIR a file for each topic, with typed columns for decoded "
        "keys and values.",
    )


class PairOptions(RowOptions):
    """The options of `pairs`."""

    bodies: bool = option(
        "--bodies", default=False, help="Add the decoded bodies as request and response."
    )
    logs: tuple[str, ...] = option(
        "--with",
        default=(),
        metavar="LOG",
        role=READS,
        help="Request log of the same time: adds what the broker says of each exchange, and the "
        "part of the latency that is outside of it. May be given more than once.",
    )
    pending: bool = option(
        "--pending",
        default=False,
        help="Only requests without a response: in live captures those in flight.",
    )


class StreamOptions(RowOptions):
    """The options of `streams`."""

    write: Path | None = option(
        "--write",
        default=None,
        metavar="DIR",
        help="Write the bytes of each side, decrypted if possible, gaps left out, to files.",
        role=Writes(in_folder=STREAM_FILES),
    )
