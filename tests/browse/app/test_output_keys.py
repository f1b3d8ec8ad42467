"""Keys for copies, files, and columns of fields."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from browse.app.copy_forms import copy_forms
from browse.app.prompt_screen import PromptScreen
from browse.detail import DetailPanes
from browse.panels.copy_chooser import CopyChooser
from dissector.public import open_capture
from tests.browse.screens import DEMO, Screen, play, screen


def test_copies_of_a_row() -> None:
    async def scene() -> None:
        async with screen() as each:
            each.app.go_to_packet(121)
            await each.press("y")
            await each.until(lambda: isinstance(each.app.screen, CopyChooser))
            await each.until(lambda: each.app.focused is not None)
            await each.press("enter")
            await each.until(lambda: bool(each.app.clipboard))
            assert each.app.clipboard.startswith(
                "121  1.568434  billing-1  JoinGroup  5  9.764  group"
            )
            assert "copied" in each.app.status.notice

    play(scene)


def test_formats_of_a_copy() -> None:
    with open_capture(DEMO, filter="request_packet == 121") as capture:
        exchange = next(iter(capture))
    forms = copy_forms(exchange.row(), "JoinGroup", exchange, [str(DEMO)], False)
    texts = {title: form() for title, form in forms.items()}
    assert texts["the row as text"] == "JoinGroup"
    assert json.loads(texts["the row as JSON"])["request_packet"] == 121
    assert json.loads(texts["both bodies as JSON"])["request"]["group_id"] == "billing"
    assert "group_id" in texts["all fields as text"]
    assert texts["the bytes as hex"].startswith("request\n0000")
    found = list(open_capture(DEMO, filter=texts["a filter for it"]))
    assert [each.request_packet for each in found] == [121]
    assert texts["a command line for it"].startswith("kafkashark dissect ")


def test_a_record_is_copied_as_ndjson_has_it() -> None:
    row = {"key": b"a", "value": b"\xff", "headers": [{"key": "h", "value": b"1"}]}
    copied = json.loads(copy_forms(row, "", None, [], False)["the row as JSON"]())
    assert copied["key"] == "a"
    assert copied["value"] == {"hex": "ff"}
    assert copied["headers"] == [{"key": "h", "value": "1"}]


def test_secrets_stay_masked_in_copies() -> None:
    capture = DEMO.parent / "kafka4-sweep-sasl.pcap"
    if not capture.exists():
        pytest.skip(f"{capture.name} is not here")
    for exchange in open_capture(capture, filter="api == SaslAuthenticate"):
        forms = copy_forms(exchange.row(), "", exchange, [str(capture)], False)
        assert "**" in forms["the bytes as hex"]()
        assert "***" in forms["both bodies as JSON"]()


def test_export_of_shown_rows(tmp_path: Path) -> None:
    async def scene() -> None:
        async with screen() as each:
            await each.filter("api == Produce")
            for form in ("csv", "ndjson", "pcapng"):
                each.app.export_to(form, tmp_path / f"out.{form}")
                await each.settle()
                assert "is written" in each.app.status.notice
            each.app.export_to("csv", tmp_path / "none" / "out.csv")
            await each.settle()
            assert "No such file" in each.app.status.notice

    play(scene)
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 53
    assert {row["api"] for row in rows} == {"Produce"}
    lines = (tmp_path / "out.ndjson").read_text().splitlines()
    assert [json.loads(line)["correlation_id"] for line in lines] == [
        int(row["correlation_id"]) for row in rows
    ]
    assert len(open_capture(tmp_path / "out.pcapng").exchanges()) == 53


def test_a_field_becomes_a_column_or_a_filter() -> None:
    async def scene() -> None:
        async with screen(details=DetailPanes(), size=(120, 40)) as each:
            each.app.go_to_packet(121)
            each.app.add_field_column("request.group_id")
            await each.settle()
            assert each.app.rows.columns[1] == "request.group_id"
            assert "billing" in next(line for line in each.lines if " 121 " in line[:10])
            await each.press("s")
            sort = each.app.session.shown.sort
            assert sort is not None
            assert sort.name == "request.group_id"
            each.app.use_field("request.group_id == billing", "and")
            await each.press("enter")
            assert 0 < len(each.app.session.shown) < 281
            each.app.use_field("api == JoinGroup", "not")
            await each.press("enter")
            assert each.app.bar.text == "(request.group_id == billing) and (not (api == JoinGroup))"
            each.app.use_field("api == Fetch", "replace")
            await each.press("enter")
            assert each.app.bar.text == "api == Fetch"
            each.app.add_field_column("request.nonsense")
            assert "no API has a field" in each.app.status.notice

    play(scene)


@pytest.mark.long
def test_comments_of_packets(tmp_path: Path) -> None:
    """Added, edited and removed; filters know them, and an export of packets has them."""
    out = tmp_path / "out.pcapng"

    async def comment(each: Screen, packet: int, text: str) -> None:
        each.app.go_to_packet(packet)
        await each.settle()
        await each.press("number_sign")
        await each.until(lambda: isinstance(each.app.screen, PromptScreen))
        await each.until(lambda: each.app.focused is not None)
        await each.press("ctrl+u")
        await each.type(text)
        await each.press("enter")
        await each.until(lambda: len(each.app.screen_stack) == 1)

    async def scene() -> None:
        async with screen(details=DetailPanes(), size=(120, 40)) as each:
            await comment(each, 121, "late")
            assert "packet comment: late" in each.text
            await comment(each, 121, "why so late?")
            assert "packet comment: why so late?" in each.text
            await comment(each, 64, "gone")
            await comment(each, 64, "")
            await comment(each, 69, "slow")
            await each.press("q")
            assert each.app.is_running
            assert "q again" in each.app.status.notice
            await each.filter("frame.comment")
            assert len(each.app.session.shown) == 2
            await each.filter('frame.comment contains "late"')
            assert len(each.app.session.shown) == 1
            each.app.export_to("pcapng", out)
            await each.settle()
        async with screen(out, details=DetailPanes(), size=(120, 40)) as each:
            packet = each.app.session.shown.parts.row(0)["request_packet"]
            assert "packet comment: why so late?" in each.text
            await comment(each, packet, "")
            assert "packet comment" not in each.text
            await each.filter("frame.comment")
            assert len(each.app.session.shown) == 0

    play(scene)
    with open_capture(out, filter='frame.comment == "why so late?"') as again:
        assert [each.api for each in again] == ["JoinGroup"]


def test_a_filter_on_info() -> None:
    async def scene() -> None:
        async with screen() as each:
            await each.filter('info contains "acks=all" and api == Produce')
            count = len(each.app.session.shown)
            assert 0 < count < 53
            await each.filter('api == Produce and not (info contains "acks=all")')
            assert count + len(each.app.session.shown) == 53

    play(scene)
