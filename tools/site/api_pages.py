"""A page for each API: its purpose, the versions that releases of Kafka offer, its fields."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from itertools import groupby

import dissector.protocol.apis
from dissector.cli.schema import declaration_lines
from dissector.protocol.api import Api
from dissector.protocol.apis import all_apis, api_module
from dissector.protocol.releases.kafka_release_table import RELEASES
from dissector.protocol.releases.kafka_releases import range_text, ranges_of
from tools.site.markup import escaped, table


def api_pages() -> dict[str, str]:
    """Return the Markdown of each API's page by its name."""
    return {each.name: "\n".join(_lines(each)) for each in all_apis()}


def _lines(api: Api) -> Iterator[str]:
    module = import_module(f"{dissector.protocol.apis.__name__}.{api_module(api.name)}")
    yield f"# {api.name}"
    for paragraph in (module.__doc__ or "").strip().split("\n\n"):
        yield from ("", escaped(" ".join(paragraph.split())))
    yield from ("", f"Decoded versions: {api.request.versions_text}.")
    yield from ("", "## Versions of brokers", "", *table(("Kafka", "offers"), _offers(api.key)))
    newest = api.request.versions.high
    yield from ("", f"## Fields of v{newest}", "", "```text")
    yield from "\n".join(declaration_lines(api, newest)).rstrip().splitlines()
    yield from ("```", "", "Of another version:", "", "```console")
    yield from (f"$ kafkashark schema {api.name} {api.request.versions.low}", "```")
    yield from ("", "[All APIs](../../apis.md)")


def _offers(key: int) -> Iterator[tuple[str, str]]:
    """Yield ranges of releases with what their brokers offer."""
    for offered, group in groupby(RELEASES, key=lambda each: ranges_of(each).get(key)):
        releases = list(group)
        first, last = releases[0], releases[-1]
        yield first if first == last else f"{first} to {last}", range_text(offered)
