"""
Captures and tables in S3 as Spark itself reaches it, `s3a://`, against moto's server.

`S3A_JARS` names the jars, separated by commas: `hadoop-aws` of the release of Spark's Hadoop, and
what it needs. `moto_server` must be on the `PATH`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs
from pyspark.sql import SparkSession

from pipeline import Request, TableOptions, make_tables, open_session, read
from pipeline.storage.filesystems import open_store
from tests.waiting import child, wait_until

DEMO = Path(__file__).parents[2] / "captures/demo.pcap"

TABLES = ("connections", "exchanges")

JARS = os.environ.get("S3A_JARS", "")

SERVER = shutil.which("moto_server")

pytestmark = [
    pytest.mark.spark,
    pytest.mark.keeps_sockets,
    pytest.mark.skipif(not (JARS and SERVER), reason="S3A_JARS or moto_server is missing"),
]


@pytest.fixture
def endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A store with the demo in its bucket `lake`, for Arrow in this process and its children."""
    log = tmp_path / "log"
    with log.open("wb") as written:
        command = [str(SERVER), "-H", "127.0.0.1", "-p", "0"]
        with child(subprocess.Popen(command, stdout=written, stderr=written)) as server:
            said = re.compile(r"http://127\.0\.0\.1:\d+")
            wait_until(lambda: said.search(log.read_text()), "the address of the server")
            url = said.findall(log.read_text())[0]
            for name, value in {
                "AWS_ENDPOINT_URL": url,
                "AWS_ACCESS_KEY_ID": "key",
                "AWS_SECRET_ACCESS_KEY": "secret",
                "AWS_REGION": "us-east-1",
                "AWS_EC2_METADATA_DISABLED": "true",
            }.items():
                monkeypatch.setenv(name, value)
            open_store.cache_clear()
            store = fs.S3FileSystem(endpoint_override=url, allow_bucket_creation=True)
            store.create_dir("lake")
            with store.open_output_stream("lake/in/demo.pcap") as target:
                target.write(DEMO.read_bytes())
            yield url
            server.terminate()


def test_rows_are_those_of_local_paths(
    endpoint: str, without_session: None, tmp_path: Path
) -> None:
    """Also the summaries, which Spark makes of the tables there."""
    settings = {
        "spark.jars": JARS,
        "spark.hadoop.fs.s3a.endpoint": endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }
    options = TableOptions(tables=frozenset(TABLES))
    there, here = "s3a://lake/out", str(tmp_path / "out")
    with open_session("local[2]", settings) as spark:
        made = make_tables(spark, Request(["s3a://lake/in"], there, options, summaries=True))
        assert make_tables(spark, Request([str(DEMO)], here, options, summaries=True)) == made
        for table in TABLES:
            found = _rows(spark, there, table)
            assert found == _rows(spark, here, table)
            assert len(found) == made.rows[table]
        users = (
            sorted(map(repr, spark.read.parquet(f"{out}/summaries/talkers").collect()))
            for out in (there, here)
        )
        assert len({tuple(each) for each in users}) == 1


def _rows(spark: SparkSession, out: str, table: str) -> list[str]:
    """Return the rows; the names of captures differ."""
    rows = (row.asDict() for row in read(spark, out, table).collect())
    return sorted(repr({key: row[key] for key in row if key != "capture"}) for row in rows)
