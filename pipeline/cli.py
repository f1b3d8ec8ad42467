"""`kafkashark pipeline`: captures become tables, with Spark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from dissector.cli.options import MAX_FRAME, MaxFrame, Ports, Schemas, ShowSecrets
from dissector.errors import UsageError

if TYPE_CHECKING:
    from pipeline.tables.table_builder import Wanted
    from pipeline.watch.stream_job import Watch

TABLES = "connections,messages,exchanges,records,fields,problems"

FIELDS = "client_software_name,client_software_version"
"""Who the clients are; all fields of all messages would be many more rows than all the rest."""

EVERY = "all"


def pipeline(
    captures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CAPTURE|DIR|GLOB]...",
            help="Captures, folders of captures, patterns; paths, or URIs as s3://bucket/a.pcap.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Where the tables go; a path or URI.")
    ] = None,
    watch: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Take the files of this folder, and those that come."),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="With --watch: end when all that is there was taken.")
    ] = False,
    master: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where Spark runs. [default: local[*]]"),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="K=V", help="A setting of Spark. May be given more than once."),
    ] = None,
    tables: Annotated[str, typer.Option(metavar="TABLE[,TABLE]", help="Which tables.")] = TABLES,
    fields: Annotated[
        str,
        typer.Option(
            metavar="PATH[,PATH]|all",
            help="Which fields of messages go into the table fields, as topics.name.",
        ),
    ] = FIELDS,
    summaries: Annotated[
        bool, typer.Option(help="Make the summaries too; they need the table exchanges.")
    ] = True,
    range_mb: Annotated[
        int,
        typer.Option("--range-mb", metavar="N", min=1, help="How much of a file is one task."),
    ] = 128,
    parts: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="In how many parts connections are dissected that cross files; 0: as many as fit.",
        ),
    ] = 0,
    idle_minutes: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="With --watch: a connection that is silent for longer has ended.",
        ),
    ] = 15,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the tables that are there.")
    ] = False,
    ports: Ports = None,
    max_frame_bytes: MaxFrame = MAX_FRAME,
    schemas: Schemas = None,
    show_secrets: ShowSecrets = False,
) -> None:
    """Make tables of captures with Spark: files of any number and size, that are one capture."""
    if out is None:
        raise UsageError("where to? --out DIR")
    if bool(captures) == bool(watch):
        raise UsageError("what? CAPTURE..., or --watch DIR")
    settings = _settings(conf or ())
    try:
        import pyspark  # noqa: F401  (told in one line where it is missing)
    except ImportError:
        raise UsageError("Spark is not installed: pip install 'kafkashark[spark]'") from None
    wanted = _wanted(tables, fields, ports, max_frame_bytes, show_secrets)
    from pipeline.jobs.job import Request, check_request, make_tables
    from pipeline.jobs.job_progress import Progress
    from pipeline.jobs.session import has_reader, open_session
    from pipeline.jobs.summaries import make_summaries
    from pipeline.watch.stream_job import MINUTE_NS, Watch

    request = Request(captures or (), out, wanted, range_mb << 20, parts, overwrite=overwrite)
    if watch:
        idle_ns = idle_minutes * MINUTE_NS
        taking = Watch(watch, out, wanted, parts=parts, idle_ns=idle_ns)
        _watch(taking, master, settings, once)
        return
    # Before Java is started, which takes seconds.
    check_request(request)
    summaries = summaries and "exchanges" in wanted.tables
    with open_session(master, settings) as spark, Progress(spark.sparkContext) as progress:
        if summaries and not has_reader(spark, out):
            raise UsageError(
                f"summaries need a reader of Spark's own, which it lacks, for {out}: "
                "--no-summaries makes the tables alone"
            )
        made = make_tables(spark, request, progress.set_stage)
        if summaries:
            progress.set_stage("summing up")
            make_summaries(spark, out)
    for table, rows in made.items():
        print(f"{table:12}{rows:>14,} rows")


def _watch(watch: Watch, master: str | None, settings: dict[str, str], once: bool) -> None:
    """Take files until nobody wants more, or until all that is there was taken."""
    from pipeline.jobs.session import open_session

    with open_session(master, settings) as spark:
        query = watch.start(spark, once)
        try:
            query.awaitTermination()
        finally:
            query.stop()


def _wanted(
    tables: str,
    fields: str,
    ports: list[int] | None,
    max_frame_bytes: int,
    show_secrets: bool,
) -> Wanted:
    from pipeline.tables.table_builder import Wanted
    from pipeline.tables.table_schemas import SCHEMAS

    named = frozenset(tables.split(","))
    for name in sorted(named - SCHEMAS.keys()):
        raise UsageError(f"--tables takes {', '.join(SCHEMAS)}, not {name!r}")
    return Wanted(
        tables=named,
        fields=frozenset() if fields == EVERY else frozenset(fields.split(",")),
        ports=frozenset(ports or ()),
        max_frame_bytes=max_frame_bytes,
        show_secrets=show_secrets,
    )


def _settings(pairs: Iterable[str]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise UsageError(f"--conf takes K=V, not {pair!r}")
        found[key] = value
    return found
