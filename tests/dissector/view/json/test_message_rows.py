"""Rows of messages from columns equal those of objects, for any windows."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest

from dissector.cli import capture_source
from dissector.cli.presentation import message_windows
from dissector.engine.reading import packet_order
from dissector.engine.reading.capture import Capture, Options
from dissector.query import selection
from dissector.view.json import message_rows
from tests.corpus import each_capture
from tests.default_frames import request, response
from tests.dissector.cli.conftest import Run, good, run, shop
from tests.tcp_captures import Wire, pcap_file

__all__ = ["good", "run", "shop"]

Texts = Callable[..., tuple[str, str]]


@pytest.fixture(params=["ndjson", "text"])
def pairs_of_texts(
    request: pytest.FixtureRequest, run: Run, monkeypatch: pytest.MonkeyPatch
) -> Texts:
    """Return the output with windows as objects and in columns."""

    def texts(*words: str | Path) -> tuple[str, str]:
        out: list[str] = []
        in_bulk: list[int] = []
        made = message_rows._message_columns
        monkeypatch.setattr(
            message_rows, "_message_columns", lambda *some: (in_bulk.append(1), made(*some))[1]
        )
        for in_columns in (False, True):
            monkeypatch.setattr(selection, "is_bulk_worthwhile", lambda _, it=in_columns: it)
            assert not in_bulk
            out.append(run("dissect", *words, "-T", request.param).out)
        assert bool(in_bulk) == bool(out[0])
        return out[0], out[1]

    return texts


@pytest.mark.thinned(4)
@each_capture("message rows")
def test_messages_of_captures(path: Path, pairs_of_texts: Texts) -> None:
    one_by_one, in_columns = pairs_of_texts(path)
    assert in_columns == one_by_one


@pytest.mark.thinned(6)
@pytest.mark.parametrize("window_bytes", [300, 2000])
@pytest.mark.parametrize("words", [(), ("-Y", "api == Produce or errors"), ("--show-secrets",)])
def test_irregular_messages(
    window_bytes: int,
    words: tuple[str, ...],
    shop: Path,
    pairs_of_texts: Texts,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(capture_source, "Options", partial(Options, window_bytes=window_bytes))
    monkeypatch.setattr(packet_order, "BATCH_MESSAGES", 3)
    one_by_one, in_columns = pairs_of_texts(shop, *words)
    assert in_columns == one_by_one
    assert in_columns.count("\n") >= 3


def test_late_names_on_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deferred messages, as objects or columns, have the names defined before them."""
    topic_id = UUID(int=5)
    wire = Wire()
    slow, quick = wire.connect(50000).syn(), wire.connect(50001).syn()
    slow.client(request(12, 4, 1, group_id="g"))
    topic_request = {"topic_id": topic_id, "partitions": []}
    quick.client(request(1, 13, 2, topics=[topic_request])).broker(response(1, 13, 2))
    topic = {"error_code": 0, "name": "orders", "topic_id": topic_id, "partitions": []}
    quick.client(request(3, 12, 3)).broker(response(3, 12, 3, topics=[topic]))
    slow.broker(response(12, 4, 1))
    monkeypatch.setattr(selection, "is_bulk_worthwhile", lambda _: True)
    monkeypatch.setattr(capture_source, "Options", partial(Options, window_bytes=1))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(pcap_file(wire.packets))))
    rows = run("dissect", "-", "-T", "ndjson").rows
    assert [row["topics"] for row in rows if row["api"] == "Fetch"] == [[str(topic_id)], []]


@pytest.fixture
def late_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A capture where the name of one topic id comes late, and that of another one never."""
    named, nameless = UUID(int=5), UUID(int=6)
    wire = Wire()
    one = wire.connect(50000).syn()
    for number, topic_id in enumerate((named, nameless, named)):
        wanted = {"topic_id": topic_id, "partitions": []}
        one.client(request(1, 13, number, topics=[wanted])).broker(response(1, 13, number))
    one.client(request(3, 12, 3)[:-1])  # with a problem: the message is cut off
    two = wire.connect(50001).syn()
    topic = {"error_code": 0, "name": "orders", "topic_id": named, "partitions": []}
    two.client(request(3, 12, 3)).broker(response(3, 12, 3, topics=[topic]))
    monkeypatch.setattr(selection, "is_bulk_worthwhile", lambda _: True)
    monkeypatch.setattr(capture_source, "Options", partial(Options, window_bytes=1))
    path = tmp_path / "late.pcap"
    path.write_bytes(pcap_file(wire.packets))
    return path


def test_lines_wait_for_names_instead_of_a_second_pass(
    run: Run, late_names: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_twice = run("dissect", late_names, "-c", "100").out
    monkeypatch.setattr(Capture, "read_names", lambda _: pytest.fail("a second pass"))
    assert run("dissect", late_names).out == read_twice
    assert read_twice.count("  orders\n") == 3  # of Fetch, and of Metadata itself
    assert read_twice.count(f"  {UUID(int=6)}\n") == 1


def test_lines_of_many_objects_do_not_wait(
    run: Run, late_names: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[Capture] = []
    read_names = Capture.read_names
    monkeypatch.setattr(
        Capture, "read_names", lambda capture: (passes.append(capture), read_names(capture))[1]
    )
    text = run("dissect", late_names).out
    assert not passes
    monkeypatch.setattr(message_windows, "MAX_WAITING_LINES", -1)
    assert run("dissect", late_names).out == text
    assert len(passes) == 1
