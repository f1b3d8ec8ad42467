"""`kafkashark pipeline`: captures to tables, with Spark."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dissector.cli.declared.reading_options import (
    DecodingOptions,
    FrameOptions,
    SecretOptions,
)
from dissector.cli.declared.value_options import ValueOptions
from dissector.cli.parsing.declarations import option
from dissector.cli.presentation.completion import complete_words
from dissector.errors import UsageError
from dissector.file_roles import Reads, Writes
from dissector.installation import extra_needed
from dissector.view.text.escape import escaped

if TYPE_CHECKING:
    from pipeline.tables.table_builder import TableOptions
    from pipeline.watch.stream_job import Watch

TABLES = (
    "connections,messages,exchanges,records,fields,problems,events,findings,lags,partition_lags"
)

NOT_WATCHED = frozenset(("findings", "lags", "partition_lags"))
"""Tables of a whole collection: a watch has no end."""

FIELDS = "client_software_name,client_software_version"
"""
Name and version of client software; the fields of all messages would be more rows than all
others.
"""

ALL_FIELDS = "all"

CLUSTER_NAME = re.compile("[A-Za-z0-9._-]+")
"""A name that all readers of Hive's folders read as it is; ids of clusters are such ones."""

_READS_ALL = Reads(folder_files=("*",))

MAX_REPORTED = 10
"""Captures named on stderr, if they could not be read; the table `problems` has all."""


class PipelineOptions(DecodingOptions, FrameOptions, SecretOptions, ValueOptions):
    """The options of `pipeline`."""

    captures: tuple[str, ...] = option(
        default=(),
        metavar="[CAPTURE|DIR|GLOB]...",
        help="Captures, folders of captures, patterns; paths, or URIs as s3://bucket/a.pcap.",
        role=_READS_ALL,
    )
    out: str | None = option(
        "--out",
        default=None,
        metavar="DIR",
        help="Folder of the tables; a path or URI.",
        role=Writes(in_folder=rf"{TABLES.replace(',', '|')}|summaries|iceberg|_.*"),
    )
    watch: str | None = option(
        "--watch",
        default=None,
        metavar="DIR",
        help="Process the files in this folder, and new ones as they arrive.",
        role=_READS_ALL,
    )
    once: bool = option(
        "--once", default=False, help="With --watch: end when all present files are processed."
    )
    master: str | None = option(
        "--master", default=None, metavar="URL", help="Spark master; by default local[*]."
    )
    conf: tuple[str, ...] = option(
        "--conf",
        default=(),
        metavar="K=V",
        help="A Spark setting. May be given more than once.",
    )
    tables: str | None = option(
        "--tables",
        default=None,
        metavar="TABLE[,TABLE]",
        complete=complete_words(lambda: TABLES.split(",")),
        help=f"Tables to make, by default all: {TABLES.replace(',', ', ')}; --watch makes no "
        "findings and lags.",
    )
    fields: str = option(
        "--fields",
        default=FIELDS,
        metavar="PATH[,PATH]|all",
        help="Fields of messages in the table fields, for example topics.name.",
    )
    lag_interval: float = option(
        "--lag-interval",
        default=60,
        metavar="S",
        least=0.001,
        help="Interval of the tables of lag, in seconds.",
    )
    summaries: bool = option(
        "--summaries", default=True, help="Make the summaries too, from the table exchanges."
    )
    range_mb: int = option(
        "--range-mb",
        default=128,
        metavar="N",
        least=1,
        help="Size of the file range per task.",
    )
    parts: int = option(
        "--parts",
        default=0,
        metavar="N",
        least=0,
        help="Number of parts for connections across files; 0, the default, selects as many as "
        "fit.",
    )
    idle_minutes: int = option(
        "--idle-minutes",
        default=15,
        metavar="N",
        least=1,
        help="With --watch: silence after which a connection counts as ended.",
    )
    file_size: int = option(
        "--file-size",
        default=128,
        metavar="MB",
        least=1,
        help="Size from which on a task begins another file of a table.",
    )
    partition_by: str = option(
        "--partition-by",
        default="date",
        metavar="KEY[,KEY]",
        choices=("date", "date,cluster", "cluster,date"),
        help="Folders of the tables: date, or date,cluster, or cluster,date.",
    )
    cluster: str | None = option(
        "--cluster",
        default=None,
        metavar="NAME",
        help="The Kafka cluster that the captures are of, for --partition-by.",
    )
    format: str = option(
        "--format",
        default="parquet",
        metavar="FORMAT",
        choices=("parquet", "delta", "iceberg"),
        help="parquet; or delta or iceberg, whose jar --conf spark.jars.packages names.",
    )
    overwrite: bool = option("--overwrite", default=False, help="Replace existing tables.")
    resume: bool = option(
        "--resume",
        default=False,
        help="Go on with the same job after it was ended: make the tables that are missing.",
    )


def pipeline(given: PipelineOptions) -> int:
    """Make tables of captures with Spark. All files together are one capture."""
    captures, out, watch, parts = given.captures, given.out, given.watch, given.parts
    if out is None:
        raise UsageError("missing --out DIR")
    if bool(captures) == bool(watch):
        raise UsageError("give either CAPTURE... or --watch DIR")
    if watch and given.resume:
        raise UsageError("--watch goes on by itself, without --resume")
    if watch and given.format != "parquet":
        raise UsageError(f"--watch writes parquet, not {given.format}")
    settings = _settings(given.conf)
    try:
        import pyspark  # noqa: F401  (a missing Spark is a usage error)
    except ImportError:
        raise UsageError(extra_needed("pipeline", "spark")) from None
    options = _table_options(given)
    from pipeline.jobs.job import Request, check_request, make_tables
    from pipeline.jobs.job_progress import Progress
    from pipeline.jobs.lakehouse import settings_for
    from pipeline.jobs.session import has_reader, open_session
    from pipeline.watch.stream_job import MINUTE_NS, Watch

    summaries = given.summaries and "exchanges" in options.tables
    request = Request(
        captures,
        out,
        options,
        given.range_mb << 20,
        parts,
        overwrite=given.overwrite,
        resume=given.resume,
        summaries=summaries,
        format=given.format,
    )
    if watch:
        idle_ns = given.idle_minutes * MINUTE_NS
        stream = Watch(watch, out, options, parts=parts, idle_ns=idle_ns)
        _watch(stream, given.master, settings, given.once)
        return report_unread(stream.unread)
    # Check before starting Java, which takes seconds.
    check_request(request)
    settings = settings_for(given.format, out) | settings
    with open_session(given.master, settings) as spark, Progress(spark.sparkContext) as progress:
        if (summaries or given.format != "parquet") and not has_reader(spark, out):
            raise UsageError(
                f"Spark can't read {out}, which summaries and --format need: "
                "--no-summaries makes only the tables"
            )
        made = make_tables(spark, request, progress.set_stage)
    for table, rows in made.rows.items():
        print(f"{table:14}{rows:>14,} rows")
    return report_unread(made.unread.values())


def report_unread(unread: Iterable[str]) -> int:
    """Report captures that are not in the tables on stderr; return the exit status."""
    reasons = list(dict.fromkeys(unread))  # Spark repeats a batch that failed
    if len(reasons) > MAX_REPORTED:
        rest = len(reasons) - MAX_REPORTED
        reasons[MAX_REPORTED:] = [f"and {rest:,} more captures could not be read"]
    for reason in reasons:
        print("kafkashark:", escaped(reason), file=sys.stderr)
    return 2 if reasons else 0


def _watch(watch: Watch, master: str | None, settings: dict[str, str], once: bool) -> None:
    """Process files until interrupted, or until all present files are processed."""
    from pipeline.jobs.session import open_session

    with open_session(master, settings) as spark:
        query = watch.start(spark, once)
        try:
            query.awaitTermination()
        finally:
            query.stop()


def _table_options(given: PipelineOptions) -> TableOptions:
    from dissector.capture.packets.decode_as import tunnel_ports
    from dissector.cli.settings.settings_file import settings_file
    from pipeline.tables.decoded_columns import with_absolute_paths
    from pipeline.tables.table_builder import TableOptions, found_keylogs
    from pipeline.tables.table_schemas import SCHEMAS

    named = frozenset(SCHEMAS if given.tables is None else given.tables.split(","))
    for name in sorted(named - SCHEMAS.keys()):
        raise UsageError(f"--tables takes {', '.join(SCHEMAS)}, not {name!r}")
    if given.watch:
        for name in sorted(named & NOT_WATCHED if given.tables else ()):
            raise UsageError(f"--watch makes no table {name}: it is of a whole collection")
        named -= NOT_WATCHED
    tunnel_ports(given.decode_as)
    folders = _folders(given)
    fields = given.fields
    return TableOptions(
        tables=named,
        fields=frozenset() if fields == ALL_FIELDS else frozenset(fields.split(",")),
        ports=frozenset(given.ports),
        max_frame_bytes=given.max_frame_bytes,
        show_secrets=given.show_secrets,
        keylogs=found_keylogs(given.keylogs),
        decode_as=given.decode_as,
        values=with_absolute_paths(given.value_settings),
        file_bytes=given.file_size << 20,
        folders=folders,
        lag_interval_s=given.lag_interval,
        thresholds=settings_file().numbers_of("advise"),
    )


def _folders(given: PipelineOptions) -> tuple[str, ...]:
    """Return the folders of each table, see `parquet_store.FOLDERS`."""
    columns = given.partition_by.split(",")
    if ("cluster" in columns) != (given.cluster is not None):
        raise UsageError("--partition-by date,cluster and --cluster NAME need each other")
    if given.cluster is not None and not CLUSTER_NAME.fullmatch(given.cluster):
        raise UsageError(
            f"--cluster takes letters, digits, '.', '_' and '-', not {given.cluster!r}"
        )
    return tuple(f"{each}={given.cluster}" if each == "cluster" else each for each in columns)


def _settings(pairs: Iterable[str]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise UsageError(f"--conf takes K=V, not {pair!r}")
        found[key] = value
    return found
