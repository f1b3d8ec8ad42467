from __future__ import annotations

import pytest

from dissector.protocol.records import Record, build_records, new_batch
from dissector.public import Exchange
from dissector.view.text.tree_node import TreeNode
from tests.browse.detail.pane_host import (
    Host,
    exchange_of,
    exchange_of_frames,
    exchanges,
    hosted,
    lines,
    play,
)
from tests.default_frames import request, response, sized

HOSTILE = "[bold red]x[/] \x1b[31m\x9b2J\u202e[@click=app.quit]q[/]"


def produced(records: bytes, topic: str = "orders", client_id: str = "test") -> Exchange:
    topics = [{"name": topic, "partition_data": [{"index": 0, "records": records}]}]
    return exchange_of(0, 3, {"acks": -1, "timeout_ms": 500, "topic_data": topics}, {}, client_id)


def batch(count: int, codec: str = "none") -> bytes:
    records = [Record(key=b"k%d" % n, value=b"v%d" % n) for n in range(count)]
    return build_records([new_batch(records, codec=codec)])


def titles(app: Host) -> list[str]:
    return [block.title for block in app.panes.fields.blocks]


def test_the_screen_of_an_exchange() -> None:
    async def scene() -> None:
        async with hosted(produced(batch(2))) as (app, _):
            shown = lines(app)
            assert shown[0] == "▶ exchange: 10.0.0.1:50000 to 10.0.0.2:9092, answered, 2.000 ms"
            assert shown[1].startswith("▼ Produce v3 request, ")
            assert shown[2:7] == [
                "├ ▶ header",
                "└ ▼ body",
                "  ├ transactional_id: null",
                "  ├ acks: -1 (all in-sync replicas)",
                "  ├ timeout_ms: 500",
            ]
            assert shown[14].startswith(" request (129)  response (12)")
            assert shown[15].startswith("0000  00 00 00 03 00 00 00 07  00 04")

    play(scene)


def test_panes_are_side_by_side_on_a_wide_screen() -> None:
    async def scene() -> None:
        async with hosted(produced(batch(2)), (120, 40)) as (app, pilot):
            app.panes.put(beside=True)
            await pilot.pause()
            first, second = lines(app)[:2]
            assert first.startswith("▶ exchange: ")
            assert first[60:].startswith(" request (129)  response (12)")
            assert second[60:].startswith("0000  00 00 00 03 00 00 00 07")
            app.panes.resize_tree(-2)
            await pilot.pause()
            assert lines(app)[0][36:].startswith(" request (129)")
            app.panes.put(beside=False)
            app.panes.resize_tree(-20)
            await pilot.pause()
            assert lines(app)[4].startswith(" request (129)")

    play(scene)


def test_a_field_marks_its_bytes() -> None:
    async def scene() -> None:
        async with hosted(produced(batch(2))) as (app, pilot):
            fields, view = app.panes.fields, app.panes.bytes
            await pilot.press("down", "down", "down", "down")
            assert fields.chosen is not None
            assert fields.chosen.name == "acks"
            assert [view.block.data[at] for at in view.marked] == [0xFF, 0xFF]
            assert view.position == view.marked.start

    play(scene)


def test_a_byte_marks_its_field() -> None:
    async def scene() -> None:
        exchange = produced(batch(3))
        async with hosted(exchange) as (app, pilot):
            fields, view = app.panes.fields, app.panes.bytes
            assert exchange.request is not None
            at = exchange.request.frame.index(b"v2")
            view.focus()
            view.action_move_to(at)
            await pilot.pause()
            assert fields.chosen is not None
            assert fields.chosen.line == f'value: "v2" [{at - 1}..{at + 2})'
            assert (view.marked, view.position) == (range(at - 1, at + 2), at)
            assert any('value: "v2"' in line for line in lines(app))

    play(scene)


def test_decompressed_records_have_their_own_bytes() -> None:
    async def scene() -> None:
        async with hosted(produced(batch(3, "gzip"))) as (app, pilot):
            assert titles(app) == ["request", "response"]
            app.panes.fields.action_open_all()
            await pilot.pause()
            assert titles(app) == ["request", "response", "records[0]"]
            await pilot.press("left_square_bracket")
            view = app.panes.bytes
            assert view.block.title == "records[0]"
            view.focus()
            view.action_move_to(view.block.data.index(b"v1"))
            await pilot.pause()
            chosen = app.panes.fields.chosen
            assert chosen is not None
            assert (chosen.name, chosen.text) == ("value", '"v1"')
            await pilot.press("right_square_bracket")
            assert view.block.title == "request"

    play(scene)


@pytest.mark.long
def test_many_records_are_opened_in_parts() -> None:
    async def scene() -> None:
        exchange = produced(batch(100_000))
        async with hosted(exchange) as (app, pilot):
            fields, view = app.panes.fields, app.panes.bytes
            view.focus()
            view.action_move_to(view.block.data.index(b"v77777"))
            await pilot.pause()
            assert fields.chosen is not None
            assert fields.chosen.text == '"v77777"'
            parts = [line.strip() for line in lines(app)]
            assert any("[77777]: offset 77777" in line for line in parts)
            assert fields.last_line < 2000
            fields.action_close()
            fields.action_close()
            assert fields.chosen.name == "[77777]"
            for _ in range(2):
                fields.action_close()
            await pilot.pause()
            assert any("[77,600..77,799]" in line for line in lines(app))

    play(scene)


@pytest.mark.long
def test_nodes_opened_for_a_byte_are_closed_afterwards() -> None:
    async def scene() -> None:
        async with hosted(produced(batch(5000))) as (app, pilot):
            fields, view = app.panes.fields, app.panes.bytes
            view.focus()
            for number in range(0, 5000, 500):
                view.action_move_to(view.block.data.index(b"v%d" % number))
                await pilot.pause()
            assert fields.chosen is not None
            assert fields.chosen.text == '"v4500"'
            assert fields.last_line < 400
            app.panes.show(produced(batch(10)))
            await pilot.pause()
            assert not any("record batch" in line for line in lines(app))

    play(scene)


@pytest.mark.long
def test_long_messages_are_read_by_a_thread() -> None:
    async def scene() -> None:
        partitions = [{"error_code": 0, "partition_index": n, "leader_id": 1, "replica_nodes": [],
                       "isr_nodes": [], "offline_replicas": []} for n in range(3000)]  # fmt: skip
        topics = [{"error_code": 0, "name": "t", "is_internal": False, "partitions": partitions}]
        asked = {"topics": None, "allow_auto_topic_creation": False}
        answer = {"brokers": [], "cluster_id": None, "controller_id": 1, "topics": topics}
        exchange = exchange_of(3, 5, asked, answer)
        async with hosted(exchange) as (app, pilot):
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert any("Metadata v5 response" in line for line in lines(app))
            response = app.panes.fields.blocks[1]
            app.panes.fields.reveal(response, len(response.data) - 6)
            await pilot.pause()
            assert app.panes.fields.chosen is not None
            assert app.panes.fields.chosen.line.startswith("isr_nodes: 0 items")
            app.panes.show(exchange)
            app.panes.show(None)
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert app.panes.fields.blocks == []

    play(scene)


def test_an_internal_error_is_a_line_of_the_tree() -> None:
    def load() -> list[TreeNode]:
        raise KeyError("[red]\x1b")

    async def scene() -> None:
        async with hosted(None) as (app, pilot):
            app.panes.fields.show(None, [TreeNode("request", load=load)])
            await pilot.press("down", "right")
            await pilot.pause()
            shown = lines(app)[1]
            assert "! a bug in kafkashark: KeyError in test_tree_and_bytes.py line" in shown
            assert "'[red]" in shown
            assert shown.isprintable()

    play(scene)


def test_open_nodes_stay_open_in_the_next_exchange() -> None:
    async def scene() -> None:
        async with hosted(produced(batch(2))) as (app, pilot):
            await pilot.press("down", "right")
            await pilot.pause()
            assert any("client_id" in line for line in lines(app))
            app.panes.show(produced(batch(1), "payments", "other"))
            await pilot.pause()
            assert any('client_id: "other"' in line for line in lines(app))
            await pilot.press("down", "left")
            await pilot.pause()
            app.panes.show(produced(batch(2)))
            await pilot.pause()
            assert not any("client_id" in line for line in lines(app))

    play(scene)


def test_keys_for_filters_columns_and_copies() -> None:
    async def scene() -> None:
        async with hosted(produced(batch(2))) as (app, pilot):
            await pilot.press("equals_sign")
            await pilot.press("down", "down", "down", "down")
            await pilot.press("equals_sign", "a", "o", "n", "c", "y")
            await pilot.pause()
            acks = "request.acks == -1"
            assert app.chosen == [(acks, "replace"), (acks, "and"), (acks, "or"), (acks, "not")]
            assert app.columns == ["request.acks"]
            assert app.clipboard.startswith("acks: -1 (all in-sync replicas) [")
            await pilot.press("Y")
            assert app.clipboard == "-1"

    play(scene)


def test_long_fields_scroll_sideways() -> None:
    async def scene() -> None:
        async with hosted(produced(batch(2), client_id="x" * 200)) as (app, pilot):
            app.panes.fields.action_open_all()
            await pilot.press("down", "asterisk")
            at_first = lines(app)[1]
            await pilot.press("ctrl+right")
            await pilot.wait_for_scheduled_animations()
            assert lines(app)[1] == at_first[app.panes.fields.scroll_offset.x :]
            assert app.panes.fields.scroll_offset.x > 0
            await pilot.press("ctrl+left")
            await pilot.wait_for_scheduled_animations()
            assert lines(app)[1] == at_first

    play(scene)


def test_without_an_exchange() -> None:
    async def scene() -> None:
        async with hosted(None) as (app, pilot):
            await pilot.press("equals_sign", "c", "y", "right", "left", "asterisk", "tab", "down")
            await pilot.press("right_square_bracket")
            app.panes.show(produced(batch(1)))
            await pilot.pause()
            app.panes.show(None)
            await pilot.pause()
            assert not "".join(lines(app)).strip()

    play(scene)


def test_captured_text_is_escaped() -> None:
    async def scene() -> None:
        exchange = produced(batch(2), HOSTILE, HOSTILE)
        async with hosted(exchange, (120, 40)) as (app, pilot):
            app.panes.fields.action_open_all()
            for line in list(app.panes.fields.root.children):
                app.panes.fields.open_line(line)
            await pilot.pause()
            text = "\n".join(lines(app))
            assert text.replace("\n", "").isprintable()
            assert r"[bold red]x[/] \x1b[31m" in text

    play(scene)


def test_invalid_bytes_are_shown_with_their_problem() -> None:
    async def scene() -> None:
        asked = bytearray(request(0, 3, 7, acks=-1, timeout_ms=500, topic_data=[])[4:])
        asked[-4:] = b"\x7f\xff\xff\xff"
        exchange = exchange_of_frames(sized(bytes(asked)), response(0, 3, 7))
        async with hosted(exchange, (120, 40)) as (app, pilot):
            problems = [line for line in lines(app) if "! " in line]
            assert problems
            fields = app.panes.fields
            while fields.chosen is not None and not fields.chosen.is_problem:
                await pilot.press("down")
            await pilot.pause()
            assert len(app.panes.bytes.marked) <= 1
            assert any(line.startswith("0000  00 00 00 03") for line in lines(app))

    play(scene)


def test_secrets_are_masked_by_default() -> None:
    async def scene(show_secrets: bool) -> str:
        (login,) = exchanges("kafka4-librdkafka-sasl.pcap", "api == SaslAuthenticate")[:1]
        async with hosted(login, (120, 40), show_secrets=show_secrets) as (app, pilot):
            app.panes.fields.action_open_all()
            await pilot.press("y")
            await pilot.pause()
            return "\n".join(lines(app))

    async def both() -> None:
        masked, open_ = await scene(False), await scene(True)
        assert "auth_bytes: ***" in masked
        assert "** **" in masked
        assert "auth_bytes: ***" not in open_
        assert "** **" not in open_

    play(both)


def test_each_kind_of_exchange_can_be_opened() -> None:
    async def scene() -> None:
        samples = [
            *exchanges("kafka4-librdkafka-sasl.pcap", "frame.number < 60")[:6],
            *exchanges("kafka39-sweep-quorum.pcap", "api in {Fetch Envelope Vote}")[:4],
            *exchanges("kafka4-librdkafka-acks.pcap", 'status != "answered"')[:3],
        ]
        async with hosted(None, (100, 30)) as (app, pilot):
            for exchange in samples:
                app.panes.show(exchange)
                for line in list(app.panes.fields.root.children):
                    app.panes.fields.move_cursor(line)
                    app.panes.fields.action_open_all()
                await pilot.pause()
                for block in app.panes.fields.blocks:
                    app.panes.fields.reveal(block, len(block.data) - 1)
                await pilot.pause()
                assert "\n".join(lines(app)).replace("\n", "").isprintable()

    play(scene)
