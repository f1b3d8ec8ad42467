"""HTML for notebooks: `_repr_html_` of captures, messages, codecs, plans and reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from dissector.engine.exchanges.exchange import Exchange
from dissector.notebook_forms import register_form
from dissector.protocol.embedded.secrecy.credentials import mask_texts
from dissector.protocol.messages import Message
from dissector.view.text.escape import escaped

if TYPE_CHECKING:
    from dissector.protocol.codecs.codec import Codec

MAX_TREE_LINES = 400
"""Lines of a message's tree that are shown."""


def html_text(value: object) -> str:
    """Return a value as text, safe in HTML and on terminals."""
    return escape(escaped(str(value)))


def facts_html(title: str, facts: Mapping[str, object]) -> str:
    """Return a title, and a table of names and values; empty values are left out."""
    rows = "".join(
        f'<tr><th style="text-align:left">{html_text(name)}</th>'
        f'<td style="text-align:left">{_value_html(value)}</td></tr>'
        for name, value in facts.items()
        if value not in (None, "", [], ())
    )
    return f"<div><b>{html_text(title)}</b><table>{rows}</table></div>"


def page_html(title: str, lines: Iterable[str]) -> str:
    """Return a title, and a whole HTML page in a frame, so that its style stays inside."""
    page = escape("\n".join(lines))
    style = "width:100%;height:32em;border:1px solid #8884;resize:vertical"
    return (
        f"<div><b>{html_text(title)}</b>"
        f'<iframe sandbox srcdoc="{page}" style="{style}"></iframe></div>'
    )


def message_html(message: Message, **context: Any) -> str:
    """
    Return the fields of a message with their places in the bytes; secrets are masked.

    Args:
        message: The message.
        context: Arguments of `detail_tree`, except `show_secrets`.
    """
    from dissector.view.text.detail_tree import detail_tree

    lines = detail_tree(message, **context)
    more = len(lines) - MAX_TREE_LINES
    shown = lines[:MAX_TREE_LINES] + [f"... {more:,} more lines"] * (more > 0)
    text = escape("\n".join(shown[1:]))
    return (
        f"<details open><summary>{html_text(shown[0])}</summary>"
        f'<pre style="text-align:left">{text}</pre></details>'
    )


def exchange_html(exchange: Exchange) -> str:
    """Return the columns of `pairs`, and the fields of both messages; secrets are masked."""
    row = mask_texts(exchange.row(), exchange.known_secrets)
    facts = facts_html(repr(exchange).strip("<>"), row)
    request = exchange.request
    trees = (
        message_html(
            message,
            request=request if message.kind == "response" else None,
            topic_name=exchange.known_topic,
        )
        for message in exchange.messages
    )
    return facts + "".join(trees)


def codec_html(codec: Codec) -> str:
    """Return the fields of a message in wire order, with their types."""
    return facts_html(repr(codec).strip("<>"), codec.fields)


def _value_html(value: object) -> str:
    if isinstance(value, list | tuple):
        return "<br>".join(map(html_text, value))
    return html_text(f"{value:,}" if type(value) is int and abs(value) < 10**15 else value)


register_form(Message, message_html)
register_form(Exchange, exchange_html)
