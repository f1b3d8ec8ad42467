"""Registers the data source `kafka-capture`; Spark is needed only for the call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissector.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """
    Add the data source `kafka-capture` to a Spark session.

    Args:
        spark: The session; filters of its queries reach data sources from now on.

    Raises:
        UsageError: Spark is not installed.
    """
    try:
        from pipeline.jobs.data_source import KafkaCapture
    except ModuleNotFoundError as error:
        what = f"Spark is not installed ({error}): pip install 'kafkashark[spark]'"
        raise UsageError(what) from None
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(KafkaCapture)
