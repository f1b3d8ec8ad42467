"""docs/recipes.md: the arguments of the container, the same in each language."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.replay.support.replay_captures import SHIPPED
from tests.serve.support.raw_client import RawClient
from tests.serve.support.serve_process import serving

PAGE = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text(encoding="utf-8")


def test_clients_outside_of_a_container_are_sent_to_the_host() -> None:
    (command,) = re.findall(r"^\$ docker run (.*?)\n```", PAGE, re.MULTILINE | re.DOTALL)
    words = shlex.split(command.replace("\\\n", " "))
    options = words[words.index("serve") + 2 :]
    assert options == ["--listen", "0.0.0.0:19092", "--advertise", "localhost", "--strict"]
    capture = str(SHIPPED / "kafka4-librdkafka-group.pcap")
    given = [each.replace("19092", "0") for each in options]
    with serving(capture, *given) as (_, address), RawClient(address) as client:
        (broker,) = client.ask("Metadata", 9, topics=[]).brokers
    assert address == f"localhost:{broker.port}"
    assert broker.host == "localhost"


def test_each_language_has_the_same_arguments() -> None:
    for language in ("java", "go", "typescript", "csharp"):
        (recipe, *_) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
        words = re.findall(r'["`]([^"`]*)["`]', recipe)
        assert {"serve", "/captures/served.pcap", "--strict", "--listen", "--advertise"} <= {*words}
        assert "press Ctrl-C to end" in recipe
        assert "ghcr.io/kafkashark/kafkashark:latest" in words
