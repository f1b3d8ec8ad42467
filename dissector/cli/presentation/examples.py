"""Examples at the end of each command's help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

EXAMPLES: Mapping[str, Sequence[str]] = {
    "dissect": (
        "dissect a.pcap -Y 'error != NONE' -V",
        "dissect a.pcap -T fields -e frame.number -e api -e request.acks",
        "dissect a.pcap -c 20 -t ad --utc",
    ),
    "pairs": (
        "pairs a.pcap -Y 'api == Produce and latency_ms > 100' --sort -latency_ms -c 10",
        "pairs a.pcap --columns request_packet,api,client_id,request.group_id",
        "pairs a.pcap -T parquet -o pairs.parquet",
    ),
    "records": (
        "records a.pcap -Y 'topic == orders and value contains \"lamp\"'",
        "records a.pcap -Y 'api == Produce and acks == -1' -T ndjson",
        "records a.pcap --columns packet,partition,offset,key,latency_ms",
    ),
    "streams": (
        "streams a.pcap --sort -gap_bytes_a",
        "streams a.pcap -Y 'topic == orders' --write bytes",
    ),
    "stats": (
        "stats a.pcap --sort -p99_ms -c 5",
        "stats a.pcap -Y 'frame.time > \"2026-11-21 09:46:35Z\"'",
    ),
    "export": (
        "export a.pcap -Y 'topic == orders' -o orders.pcapng",
        "export a.pcap --redact --keep topic -o to-share.pcapng",
    ),
    "groups": ("groups a.pcap --group billing",),
    "upgrade": ("upgrade a.pcap --to 4.4",),
    "secrets": (
        "secrets captures/*.pcap",
        "secrets a.pcapng --keylog keys.log -T ndjson",
    ),
    "schemas": (
        "schemas a.pcap",
        "schemas a.pcap --values schemas/ -Y 'topic == orders' -T ndjson",
    ),
    "schema": ("schema Produce", "schema Fetch 12", "schema -T ndjson"),
    "replay": (
        "replay a.pcap --to mock --speed max",
        "replay a.pcap --to new-broker:9092 --prefix test- --create-topics --report out.html",
        "replay a.pcap --to new-broker:9092 --speed auto --latency-limit 'Produce:p99>50ms'",
        "replay a.pcap --to new-broker:9092 --part 1/2 --report part1.ndjson",
        "replay --merge part1.ndjson part2.ndjson",
    ),
    "conform": (
        "conform a.pcap --fail-on warning",
        "conform a.pcap --select F,B -T sarif -o findings.sarif",
    ),
    "advise": (
        "advise a.pcap",
        "advise a.pcap --set tiny-batches.records=5 --fail-on risky",
        "advise a.pcap -o advice.html",
    ),
    "timeline": (
        "timeline a.pcap --kind group",
        "timeline a.pcap -T perfetto -o a.perfetto",
        "timeline a.pcap --otlp a.jsonl",
    ),
    "report": ("report a.pcap -o report.html",),
    "browse": (
        "browse a.pcap",
        "browse a.pcap -Y 'error != NONE'",
        "browse -i eth0 -f 'tcp port 9092'",
    ),
    "serve": (
        "serve a.pcap --listen 127.0.0.1:9092 --strict",
        "serve a.pcap --fault 'api == Produce' NOT_LEADER_OR_FOLLOWER,times:3",
        "serve a.pcap --upstream test-broker:9092 --record added.pcapng",
    ),
    "record": (
        "record --to broker:9092 -o orders.pcapng",
        "record --to broker:9093 --tls -o test.pcapng -- pytest",
        "record --to broker:9092 -o - | kafkashark browse -",
        "record --to broker:9092 -o a.pcapng --fault 'api == Fetch' delay:500,times:3",
    ),
    "mcp": ("mcp captures/",),
    "wireshark": (
        "wireshark a.pcap",
        "wireshark tls.pcap --keylog keys.log --no-open",
        "wireshark --install-extcap",
    ),
    "exporter": (
        "exporter -i eth0 -f 'tcp port 9092'",
        "exporter a.pcap -o a.prom",
        "exporter - --otlp http://collector:4318",
        "exporter --dashboard -o dashboard.json",
    ),
    "pipeline": (
        "pipeline captures/ --out tables",
        "pipeline --watch incoming --out watched --once",
    ),
}
