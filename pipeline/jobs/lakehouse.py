"""
The tables of a job as tables of Delta Lake or Iceberg, by their own procedures in Spark.

Both take the Parquet files where they are: they read their footers, and write only what they keep
about them, so that no row is written twice. The jars are not ours; the user gives them.

    OUT/exchanges/_delta_log            Delta Lake: the table is the folder of the files
    OUT/iceberg/exchanges/metadata      Iceberg: a table of its own that names the files
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dissector.errors import UsageError
from pipeline.jobs.query import read
from pipeline.jobs.session import error_summary, root_cause_text
from pipeline.storage.atomic_files import has_files, join_path, remove_folder
from pipeline.storage.filesystems import absolute
from pipeline.storage.parquet_store import partition_columns
from pipeline.tables.table_schemas import SCHEMAS

PARQUET, DELTA, ICEBERG = "parquet", "delta", "iceberg"

PACKAGES = {
    DELTA: "io.delta:delta-spark_SPARK_2.13:VERSION",
    ICEBERG: "org.apache.iceberg:iceberg-spark-runtime-SPARK_2.13:VERSION",
}
"""The packages that have the jars, for a release of Spark as 4.1."""

CATALOG = "kafkashark"
"""The catalog of Iceberg with the tables of a job."""

_PROBE = "_probe"

_EXTENSIONS, _CATALOG = "spark.sql.extensions", f"spark.sql.catalog.{CATALOG}"


def settings_for(format: str, out: str) -> dict[str, str]:
    """
    Return the settings that a session needs for tables of a format.

    Args:
        format: `parquet`, `delta` or `iceberg`.
        out: The folder of the tables.

    Source: https://docs.delta.io/quick-start/#set-up-apache-spark-with-delta-lake
    Source: https://iceberg.apache.org/docs/latest/spark-configuration/
    """
    if format == DELTA:
        return {
            _EXTENSIONS: "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        }
    if format == ICEBERG:
        return {
            _EXTENSIONS: "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            _CATALOG: "org.apache.iceberg.spark.SparkCatalog",
            f"{_CATALOG}.type": "hadoop",
            # A table that a job has removed with its folder would stay in it for 30 seconds.
            f"{_CATALOG}.cache-enabled": "false",
            f"{_CATALOG}.warehouse": absolute(out),
        }
    return {}


def require_format(spark: SparkSession, format: str, out: str) -> None:
    """
    Check that a format can be written, and read, before a job begins.

    Raises:
        UsageError: Its jar is missing, or not for this release of Spark.
    """
    if format not in PACKAGES:
        return
    release = ".".join(spark.version.split(".")[:2])
    package = PACKAGES[format].replace("SPARK", release)
    folder = join_path(absolute(out), _PROBE)
    probe = f"{CATALOG}.{_PROBE}" if format == ICEBERG else f"{DELTA}.`{_quoted(folder)}`"
    remove_folder(folder)
    try:
        spark.range(1).writeTo(probe).using(format).create()
        spark.table(probe).count()
    except (PySparkException, Py4JError) as error:
        cause = error_summary(root_cause_text(error))
        raise UsageError(
            f"--format {format} needs --conf spark.jars.packages={package}, a release for Spark "
            f"{release}: {cause}"
        ) from None
    finally:
        remove_folder(folder)


def _quoted(path: str) -> str:
    return path.replace("`", "``")


def convert(
    spark: SparkSession, format: str, out: str, tables: Iterable[str], folders: Sequence[str]
) -> None:
    """
    Make tables of a format of those that a job has written as Parquet.

    Args:
        spark: A session with `settings_for` the format.
        format: `delta` or `iceberg`.
        out: The folder of the tables.
        tables: Names of tables; those without a row are left out.
        folders: Their folders, as they were written.
    """
    to_format = _to_delta if format == DELTA else _to_iceberg
    for table in tables:
        if has_files(join_path(out, table)):
            to_format(spark, out, table, partition_columns(SCHEMAS[table].names, folders))


def _to_delta(spark: SparkSession, out: str, table: str, columns: Sequence[str]) -> None:
    """Let Delta Lake take the files; a table that is one of Delta already stays as it is."""
    parts = ", ".join(f"{each} STRING" for each in columns)
    by = f" PARTITIONED BY ({parts})" if parts else ""
    spark.sql(f"CONVERT TO DELTA {_parquet(out, table)}{by}")


def _to_iceberg(spark: SparkSession, out: str, table: str, columns: Sequence[str]) -> None:
    """Let Iceberg take the files into a new table, which replaces that of a job that failed."""
    name = f"{ICEBERG}.{table}"
    rows = read(spark, out, table).select(*SCHEMAS[table].names, *columns).limit(0)
    new = rows.writeTo(f"{CATALOG}.{name}").using(ICEBERG)
    if columns:
        new = new.partitionedBy(*(rows[each] for each in columns))
    new.createOrReplace()
    spark.sql(
        f"CALL {CATALOG}.system.add_files(table => :table, source_table => :files)",
        {"table": name, "files": _parquet(out, table)},
    )


def _parquet(out: str, table: str) -> str:
    return f"parquet.`{_quoted(join_path(out, table))}`"
