"""Columns that are made of other columns: the same in bulk as of single exchanges."""

from __future__ import annotations

from pathlib import Path

import polars
import pytest

from dissector.engine.exchanges import exchange_facts
from tests import tcp_captures
from tests.dissector.cli import cli_traffic
from tests.dissector.cli.conftest import Run

WORDS = (
    *("kafka.api_key", "kafka.correlation_id", "kafka.client_id", "kafka.topic_name"),
    *("kafka.error", "kafka.len", "count(problems)", "upper(api)", "client_id[0:3]", "tcp.srcport"),
    *("request.acks", "problems[0:5]", "len(client_id)"),
)


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture with a client id that must be masked."""
    wire = tcp_captures.Wire()
    connection = wire.connect().syn()
    for number, name in enumerate(("shop", "password=hunter2", None)):
        connection.client(cli_traffic.request_frame(12, 0, number, client_id=name, group_id="g"))
        connection.broker(cli_traffic.response_frame(12, 0, number, error_code=25))
    return Path(tcp_captures.write(tmp_path_factory.mktemp("secret") / "secret.pcap", wire.packets))


@pytest.mark.parametrize("more", [(), ("--show-secrets",), ("-Y", "api != Metadata")])
@pytest.mark.parametrize("form", ["ndjson", "csv", "parquet"])
def test_operands_are_the_same_from_columns_and_objects(
    good: Run,
    shop: Path,
    secret: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    more: tuple[str, ...],
) -> None:
    words = [word for name in WORDS for word in ("-e", name)]
    for capture in (shop, secret):
        outputs = []
        for worthwhile in (1, 10**9):
            monkeypatch.setattr(exchange_facts, "MIN_BULK_EXCHANGES", worthwhile)
            file = tmp_path / f"{capture.name}-{worthwhile}"
            good("pairs", capture, "-T", form, "-o", file, *words, *more)
            outputs.append(polars.read_parquet(file) if form == "parquet" else file.read_text())
        assert outputs[0].equals(outputs[1]) if form == "parquet" else outputs[0] == outputs[1]
        if form != "parquet" and capture == secret:
            assert ("hunter2" in str(outputs[0])) == ("--show-secrets" in more)
