"""`kafkashark pipeline`: captures to tables, with Spark."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from dissector.capture.packets.decode_as import tunnel_ports
from dissector.cli.options import (
    MAX_FRAME,
    DecodeAs,
    KeyLogs,
    MaxFrame,
    Ports,
    Schemas,
    ShowSecrets,
)
from dissector.errors import UsageError
from dissector.file_roles import Reads, Writes
from dissector.installation import extra_needed
from dissector.view.text.escape import escaped

if TYPE_CHECKING:
    from pipeline.tables.table_builder import TableOptions
    from pipeline.watch.stream_job import Watch

TABLES = "connections,messages,exchanges,records,fields,problems,events"

FIELDS = "client_software_name,client_software_version"
"""
Name and version of client software; the fields of all messages would be more rows than all
others.
"""

ALL_FIELDS = "all"

_READS_ALL = Reads(folder_files=("*",))

MAX_REPORTED = 10
"""Captures named on stderr, if they could not be read; the table `problems` has all."""


def pipeline(
    captures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CAPTURE|DIR|GLOB]...",
            help="Captures, folders of captures, patterns; paths, or URIs as s3://bucket/a.pcap.",
            show_default=False,
        ),
        _READS_ALL,
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Folder of the tables; a path or URI."),
        Writes(in_folder=rf"{TABLES.replace(',', '|')}|summaries|_.*"),
    ] = None,
    watch: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Process the files in this folder, and new ones as they arrive."
        ),
        _READS_ALL,
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="With --watch: end when all present files are processed.")
    ] = False,
    master: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Spark master. [default: local[*]]"),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="K=V", help="A Spark setting. May be given more than once."),
    ] = None,
    tables: Annotated[str, typer.Option(metavar="TABLE[,TABLE]", help="Tables to make.")] = TABLES,
    fields: Annotated[
        str,
        typer.Option(
            metavar="PATH[,PATH]|all",
            help="Fields of messages in the table fields, for example topics.name.",
        ),
    ] = FIELDS,
    summaries: Annotated[
        bool, typer.Option(help="Make the summaries too, from the table exchanges.")
    ] = True,
    range_mb: Annotated[
        int,
        typer.Option("--range-mb", metavar="N", min=1, help="Size of the file range per task."),
    ] = 128,
    parts: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Number of parts for connections across files; 0 selects as many as fit.",
        ),
    ] = 0,
    idle_minutes: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="With --watch: silence after which a connection counts as ended.",
        ),
    ] = 15,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace existing tables.")
    ] = False,
    ports: Ports = None,
    max_frame_bytes: MaxFrame = MAX_FRAME,
    keylogs: KeyLogs = None,
    decode_as: DecodeAs = None,
    schemas: Schemas = None,
    show_secrets: ShowSecrets = False,
) -> int:
    """Make tables of captures with Spark. All files together are one capture."""
    if out is None:
        raise UsageError("missing --out DIR")
    if bool(captures) == bool(watch):
        raise UsageError("give either CAPTURE... or --watch DIR")
    settings = _settings(conf or ())
    try:
        import pyspark  # noqa: F401  (a missing Spark is a usage error)
    except ImportError:
        raise UsageError(extra_needed("pipeline", "spark")) from None
    options = _table_options(tables, fields, ports, max_frame_bytes, show_secrets, keylogs)
    options = replace(options, decode_as=tuple(decode_as or ()))
    tunnel_ports(options.decode_as)
    from pipeline.jobs.job import Request, check_request, make_tables
    from pipeline.jobs.job_progress import Progress
    from pipeline.jobs.session import has_reader, open_session
    from pipeline.jobs.summaries import make_summaries
    from pipeline.watch.stream_job import MINUTE_NS, Watch

    request = Request(captures or (), out, options, range_mb << 20, parts, overwrite=overwrite)
    if watch:
        idle_ns = idle_minutes * MINUTE_NS
        stream = Watch(watch, out, options, parts=parts, idle_ns=idle_ns)
        _watch(stream, master, settings, once)
        return report_unread(stream.unread)
    # Check before starting Java, which takes seconds.
    check_request(request)
    summaries = summaries and "exchanges" in options.tables
    with open_session(master, settings) as spark, Progress(spark.sparkContext) as progress:
        if summaries and not has_reader(spark, out):
            raise UsageError(
                f"Spark can't read {out}, which summaries need: "
                "--no-summaries makes only the tables"
            )
        made = make_tables(spark, request, progress.set_stage)
        if summaries:
            progress.set_stage("making summaries")
            make_summaries(spark, out)
    for table, rows in made.rows.items():
        print(f"{table:12}{rows:>14,} rows")
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


def _table_options(
    tables: str,
    fields: str,
    ports: list[int] | None,
    max_frame_bytes: int,
    show_secrets: bool,
    keylogs: list[str] | None,
) -> TableOptions:
    from pipeline.tables.table_builder import TableOptions, found_keylogs
    from pipeline.tables.table_schemas import SCHEMAS

    named = frozenset(tables.split(","))
    for name in sorted(named - SCHEMAS.keys()):
        raise UsageError(f"--tables takes {', '.join(SCHEMAS)}, not {name!r}")
    return TableOptions(
        tables=named,
        fields=frozenset() if fields == ALL_FIELDS else frozenset(fields.split(",")),
        ports=frozenset(ports or ()),
        max_frame_bytes=max_frame_bytes,
        show_secrets=show_secrets,
        keylogs=found_keylogs(keylogs or ()),
    )


def _settings(pairs: Iterable[str]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise UsageError(f"--conf takes K=V, not {pair!r}")
        found[key] = value
    return found
