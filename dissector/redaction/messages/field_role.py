"""The role of a field in a redaction."""

from __future__ import annotations

from enum import Enum


class Role(Enum):
    """
    The role of a field of text or bytes.

    Names of one kind can be kept by the value of their role; `NEVER_KEPT` can't.
    """

    TOPIC = "topic"
    GROUP = "group"
    MEMBER = "member"
    CLIENT_ID = "client_id"
    TRANSACTIONAL_ID = "transactional_id"
    INSTANCE = "instance"
    HOST = "host"
    RACK = "rack"
    PRINCIPAL = "principal"
    RESOURCE = "resource"
    CONFIG = "config"
    DIRECTORY = "directory"
    CLUSTER_ID = "cluster_id"
    ID = "id"
    PRODUCER_ID = "producer_id"
    ERROR_TEXT = "error_text"
    REGEX = "regex"
    SUBTOPOLOGY = "subtopology"
    METADATA = "metadata"

    WORD = "word"
    """Kafka's own words; any other text is a name."""
    SETTING = "setting"
    """The name of a setting: Kafka's own stays."""
    COORDINATOR_KEY = "coordinator_key"
    SOFTWARE = "software"
    """The name or the version of a client."""
    SECRET = "secret"
    OPAQUE = "opaque"
    EMBEDDED = "embedded"
    RECORDS = "records"


NEVER_KEPT = frozenset(
    (
        Role.WORD,
        Role.SETTING,
        Role.COORDINATOR_KEY,
        Role.SOFTWARE,
        Role.SECRET,
        Role.OPAQUE,
        Role.EMBEDDED,
        Role.RECORDS,
    )
)

KEPT = tuple(role.value for role in Role if role not in NEVER_KEPT)
"""Values of `--keep`."""
