"""
librdkafka's mock cluster, run in this process without an installation.

It is made for tests of clients and supports what these use: no administration, and topics keep
their records in memory. confluent-kafka ships librdkafka, but its Python interface has no mock, so
this module calls the library directly.

Source: librdkafka, rdkafka_mock.h.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, Self

from dissector.errors import ReplayError
from dissector.installation import extra_needed

_PRODUCER = 0
_TARGET_NAME = "mock"

_MAX_PARTITIONS = 10_000
"""
Limit per topic; librdkafka allocates all at once, and ends the process without memory.

A damaged capture may show any number.
"""


class MockCluster:
    """
    A cluster of librdkafka's mock brokers, from `__enter__` to `__exit__`.

        with Mock(brokers=3, topics={"orders": 6}) as mock:
            Cluster.connect(mock.addresses)

    Attributes:
        addresses: `host:port` of each broker, by node id from 1.
    """

    def __init__(self, brokers: int = 1, topics: Mapping[str, int] | None = None) -> None:
        """
        Configure the cluster.

        Args:
            brokers: Number of brokers.
            topics: Topic -> number of partitions.
        """
        self.addresses: list[str] = []
        self._brokers = brokers
        self._topics = dict(topics or {})
        self._library: Any = None
        self._client: int | None = None
        self._cluster: int | None = None

    def __enter__(self) -> Self:
        """
        Start the cluster.

        Raises:
            ReplayError: librdkafka is not available, or can't start it.
        """
        if self._brokers < 1:
            raise ReplayError(_TARGET_NAME, f"can not be started with {self._brokers} brokers")
        self._library = _library()
        message = ctypes.create_string_buffer(512)
        settings = self._library.rd_kafka_conf_new()
        self._library.rd_kafka_conf_set(settings, b"log_level", b"0", None, 0)
        self._client = self._library.rd_kafka_new(_PRODUCER, settings, message, len(message))
        if not self._client:
            raise ReplayError(_TARGET_NAME, f"can not be started ({message.value.decode()})")
        self._cluster = self._library.rd_kafka_mock_cluster_new(self._client, self._brokers)
        if not self._cluster:
            self.__exit__()
            raise ReplayError(_TARGET_NAME, "can not be started")
        addresses = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster)
        self.addresses = addresses.decode().split(",")
        for name, partitions in self._topics.items():
            self.create_topic(name, partitions)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the cluster and discard its records."""
        if self._cluster:
            self._library.rd_kafka_mock_cluster_destroy(self._cluster)
        if self._client:
            self._library.rd_kafka_destroy(self._client)
        self._cluster = self._client = None

    def create_topic(self, name: str, partitions: int) -> None:
        """
        Create a topic, with at most `_MAX_PARTITIONS`.

        Raises:
            ReplayError: The topic exists already.
        """
        create = self._library.rd_kafka_mock_topic_create
        encoded = name.encode(errors="surrogateescape")
        count = min(partitions, _MAX_PARTITIONS)
        self._check(create(self._cluster, encoded, count, 1), f"topic {name!r}")

    def fail_next(self, api_key: int, *errors: int) -> None:
        """Answer the next requests of an API with these error codes, one each."""
        codes = (ctypes.c_int * len(errors))(*errors)
        self._library.rd_kafka_mock_push_request_errors_array(
            self._cluster, api_key, len(errors), codes
        )

    def fail_topic(self, name: str, error: int) -> None:
        """Answer all requests about a topic with an error code; 0 ends that."""
        self._library.rd_kafka_mock_topic_set_error(self._cluster, name.encode(), error)

    def set_leader(self, topic: str, partition: int, node: int) -> None:
        """Move a partition to another broker; -1 leaves it without a leader."""
        move = self._library.rd_kafka_mock_partition_set_leader
        self._check(move(self._cluster, topic.encode(), partition, node), f"{topic}-{partition}")

    def set_versions(self, api_key: int, low: int, high: int) -> None:
        """Change the offered versions of an API; -1 and -1 remove it."""
        change = self._library.rd_kafka_mock_set_apiversion
        self._check(change(self._cluster, api_key, low, high), f"API {api_key}")

    def set_down(self, node: int) -> None:
        """Stop a broker: it closes its connections and accepts no new ones."""
        self._check(self._library.rd_kafka_mock_broker_set_down(self._cluster, node), f"{node}")

    def set_up(self, node: int) -> None:
        """Start a stopped broker again."""
        self._check(self._library.rd_kafka_mock_broker_set_up(self._cluster, node), f"{node}")

    def advertise(self, node: int, host: str, port: int) -> None:
        """Change the advertised address of a broker, but not where it listens."""
        set_address = self._library.rd_kafka_mock_broker_set_host_port
        set_address(self._cluster, node, host.encode(), port)

    def _check(self, error: int, what: str) -> None:
        if error:
            text = self._library.rd_kafka_err2str(error).decode()
            raise ReplayError(_TARGET_NAME, f"{what}: {text}")


_POINTER, _INT, _TEXT, _SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t

_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "rd_kafka_conf_new": (_POINTER,),
    "rd_kafka_conf_set": (_INT, _POINTER, _TEXT, _TEXT, _TEXT, _SIZE),
    "rd_kafka_new": (_POINTER, _INT, _POINTER, _TEXT, _SIZE),
    "rd_kafka_destroy": (None, _POINTER),
    "rd_kafka_err2str": (_TEXT, _INT),
    "rd_kafka_mock_cluster_new": (_POINTER, _POINTER, _INT),
    "rd_kafka_mock_cluster_destroy": (None, _POINTER),
    "rd_kafka_mock_cluster_bootstraps": (_TEXT, _POINTER),
    "rd_kafka_mock_topic_create": (_INT, _POINTER, _TEXT, _INT, _INT),
    "rd_kafka_mock_topic_set_error": (None, _POINTER, _TEXT, _INT),
    "rd_kafka_mock_partition_set_leader": (_INT, _POINTER, _TEXT, ctypes.c_int32, ctypes.c_int32),
    "rd_kafka_mock_push_request_errors_array": (None, _POINTER, ctypes.c_int16, _SIZE, _POINTER),
    "rd_kafka_mock_set_apiversion": (
        _INT,
        _POINTER,
        ctypes.c_int16,
        ctypes.c_int16,
        ctypes.c_int16,
    ),
    "rd_kafka_mock_broker_set_down": (_INT, _POINTER, ctypes.c_int32),
    "rd_kafka_mock_broker_set_up": (_INT, _POINTER, ctypes.c_int32),
    "rd_kafka_mock_broker_set_host_port": (None, _POINTER, ctypes.c_int32, _TEXT, _INT),
}
"""Name -> types of the result and of the arguments."""


def _library() -> Any:
    """Open confluent-kafka's extension module, through which librdkafka's symbols are found."""
    try:
        from confluent_kafka import cimpl

        library = ctypes.CDLL(cimpl.__file__)
        for name, (result, *arguments) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (ImportError, OSError, AttributeError) as error:
        why = f"can not be started: librdkafka's mock cluster is not available ({error})"
        raise ReplayError(_TARGET_NAME, why, extra_needed("--to mock", "mock")) from None
    return library
