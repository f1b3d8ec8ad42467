"""Separates topics in the capture from others, which a fallback answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from construct import Container

from serve.answers.client_request import ClientRequest


class TopicArrays(NamedTuple):
    """
    Places of topics in the messages of an API.

    Attributes:
        asked: Name of the array in the request.
        name: Name of the field with the topic name.
        answered: Name of the array in the response.
    """

    asked: str
    name: str
    answered: str


TOPIC_ARRAYS = {
    "Metadata": TopicArrays("topics", "name", "topics"),
    "Produce": TopicArrays("topic_data", "name", "responses"),
    "Fetch": TopicArrays("topics", "topic", "responses"),
    "DeleteRecords": TopicArrays("topics", "name", "topics"),
    "ListOffsets": TopicArrays("topics", "name", "topics"),
    "OffsetForLeaderEpoch": TopicArrays("topics", "topic", "topics"),
}
"""APIs with an independent answer for each topic."""


def split_topics(
    request: ClientRequest, is_known: Callable[[str], bool]
) -> tuple[ClientRequest | None, ClientRequest | None]:
    """Split a request into known and unknown topics; None replaces an empty part."""
    arrays = TOPIC_ARRAYS.get(request.api)
    elements = request.body.get(arrays.asked) if arrays is not None else None
    if arrays is None or not elements:
        return request, None
    known = [each for each in elements if not each[arrays.name] or is_known(each[arrays.name])]
    if len(known) == len(elements):
        return request, None
    others = [each for each in elements if each not in known]
    parts = [
        replace(request, body=Container(request.body, **{arrays.asked: part})) if part else None
        for part in (known, others)
    ]
    return parts[0], parts[1]


def topic_names(request: ClientRequest) -> list[str]:
    """Return the topic names in a request."""
    arrays = TOPIC_ARRAYS[request.api]
    return [each[arrays.name] for each in request.body[arrays.asked]]


def merge_topics(api: str, answer: Container, more: Container) -> Container:
    """Return an answer, extended by the topics of another one."""
    name = TOPIC_ARRAYS[api].answered
    return Container(answer, **{name: [*answer[name], *more[name]]})
