"""The tables that a job has written, for queries."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as everybody calls it)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from pipeline.storage.atomic_files import join_path
from pipeline.storage.parquet_store import CLUSTER, DATE
from pipeline.tables.table_schemas import SCHEMAS


def read(spark: SparkSession, out: str, table: str) -> DataFrame:
    """
    Return a table: the columns of the command, in their order, the date, and the cluster if given.

    Args:
        spark: A session.
        out: The folder of the tables.
        table: One of `SCHEMAS`; it is empty if the job has written no row.
    """
    rows = from_arrow_schema(SCHEMAS[table])
    columns = rows.names
    schema = StructType([*rows, StructField(DATE, StringType())])
    try:
        found = spark.read.schema(schema).parquet(join_path(out, table))
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        found = spark.createDataFrame([], schema)
    return found.select(*columns, DATE, *(each for each in found.columns if each == CLUSTER))


def views(spark: SparkSession, out: str) -> None:
    """
    Create a temporary view for each table, under its name.

    Times in ns get an additional timestamp column: `time` of messages, records, fields and
    problems, `request_time` of exchanges, `first_time` of connections.
    """
    for table in SCHEMAS:
        rows = read(spark, out, table)
        for name in rows.columns:
            if name.endswith("time_ns"):
                rows = rows.withColumn(name.removesuffix("_ns"), timestamp_column(name))
        rows.createOrReplaceTempView(table)


def timestamp_column(name: str) -> Column:
    """Return a column of ns since the epoch as a timestamp, in µs."""
    return F.timestamp_micros(F.floor(F.col(name) / 1000))
