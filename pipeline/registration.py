"""Registration of the data source `kafka-capture`; only the call needs Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissector.errors import UsageError
from dissector.installation import extra_needed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """
    Add the data source `kafka-capture` to a Spark session.

    Args:
        spark: The session.

    Raises:
        UsageError: Spark is not installed.
    """
    try:
        from pipeline.jobs.data_source import KafkaCapture
    except ModuleNotFoundError as error:
        message = extra_needed("the data source kafka-capture", "spark")
        raise UsageError(f"{message}: {error}") from None
    spark.dataSource.register(KafkaCapture)
