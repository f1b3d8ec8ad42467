"""
Turns captures into tables on Spark.

    from pipeline import Request, TableOptions, make_tables, open_session, views

    with open_session() as spark:
        make_tables(spark, Request(["captures/demo.pcap"], "tables", TableOptions()))
        views(spark, "tables")
        spark.sql("SELECT api, count(*) FROM exchanges GROUP BY api").show()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.jobs.job import make_tables
    from pipeline.jobs.query import read, views
    from pipeline.jobs.request import Request
    from pipeline.jobs.session import open_session, spark_errors
    from pipeline.jobs.summaries import make_summaries
    from pipeline.registration import register
    from pipeline.tables.table_builder import TableOptions
    from pipeline.tables.table_schemas import KEYS

__all__ = [
    "KEYS",
    "Request",
    "TableOptions",
    "make_summaries",
    "make_tables",
    "open_session",
    "read",
    "register",
    "spark_errors",
    "views",
]

_PLACES = {
    "KEYS": "tables.table_schemas",
    "Request": "jobs.request",
    "TableOptions": "tables.table_builder",
    "make_summaries": "jobs.summaries",
    "make_tables": "jobs.job",
    "read": "jobs.query",
    "register": "registration",
    "open_session": "jobs.session",
    "spark_errors": "jobs.session",
    "views": "jobs.query",
}


def __getattr__(name: str) -> Any:
    """Load a name at its first use: workers import the stages without Spark."""
    from importlib import import_module

    if name not in _PLACES:
        raise AttributeError(f"module 'pipeline' has no attribute {name!r}")
    return getattr(import_module(f"pipeline.{_PLACES[name]}"), name)
