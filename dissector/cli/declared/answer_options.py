"""Options of the commands that answer a question about a whole capture."""

from __future__ import annotations

from dissector.cli.declared.reading_options import (
    CopyOptions,
    LiveOptions,
    OutputOptions,
    PeriodOptions,
    ReadingOptions,
)
from dissector.cli.declared.row_options import (
    ColumnOptions,
    SortOptions,
    TimeOptions,
    format_option,
)
from dissector.cli.parsing.declarations import option
from dissector.cli.presentation.completion import complete_words
from dissector.protocol.releases.kafka_release_table import RELEASES
from dissector.summary.key_columns import KEYS


class SectionOptions(
    PeriodOptions, OutputOptions, ColumnOptions, SortOptions, ReadingOptions, CopyOptions
):
    """The options of reports in sections, a table each."""

    form: str = format_option("table", "ndjson", "csv", "parquet")


class StatsOptions(SectionOptions, LiveOptions):
    """The options of `stats`."""

    by: tuple[str, ...] = option(
        "--by",
        default=(),
        metavar="KEY[,KEY]",
        complete=complete_words(lambda: KEYS, hooks=True),
        help=f"A table by any keys, with errors by name: {'|'.join(KEYS)}, hook.NAME of --script, "
        "an interval such as '10 s', or a field of decoded keys or values such as value.user.id. "
        "May be given more than once. Exchanges without a topic, partition, group, error, field or "
        "value of a hook are not in tables by these.",
    )
    topics: bool = option(
        "--topics", default=False, help="Users of each topic: APIs, versions, software."
    )
    clients: bool = option(
        "--clients", default=False, help="Clients and their software, from ApiVersions."
    )
    talkers: bool = option("--talkers", default=False, help="Clients and brokers by bytes.")
    sizes: bool = option("--sizes", default=False, help="Sizes of messages by API.")
    network: bool = option(
        "--network",
        default=False,
        help="Of each client and broker the parts of the latency: network_ms and server_ms.",
    )
    broker_times: bool = option(
        "--broker-times",
        default=False,
        help="Of request logs: where the time goes in the broker, by API.",
    )
    interval: float | None = option(
        "--interval",
        default=None,
        metavar="S",
        least=0.1,
        help="Print the report so far every S seconds; on a terminal in place.",
    )


class GroupOptions(SectionOptions, TimeOptions, LiveOptions):
    """The options of `groups`."""

    names: tuple[str, ...] = option(
        "--group", default=(), metavar="NAME", help="Only this group; may be repeated."
    )
    interval: float | None = option(
        "--interval",
        default=None,
        metavar="S",
        least=0.001,
        help="Print the lag at the end of each S seconds instead: where it grows, or is stuck.",
    )


class ValueUseOptions(SectionOptions, TimeOptions, LiveOptions):
    """The options of `schemas`."""


class SecretPlaceOptions(OutputOptions, ReadingOptions):
    """The options of `secrets`."""

    form: str = format_option("text", "ndjson")


class UpgradeOptions(SectionOptions, LiveOptions):
    """The options of `upgrade`."""

    to: str = option(
        "--to",
        metavar="RELEASE",
        complete=complete_words(lambda: RELEASES),
        help="The release of Kafka, as 4.4; or latest.",
    )
    clients: bool = option(
        "--clients",
        default=False,
        help="Check an upgrade of the clients instead: report brokers that are too old.",
    )
    internal: bool = option(
        "--internal",
        default=False,
        help="Judge brokers and controllers as clients of each other too, such as fetchers.",
    )
