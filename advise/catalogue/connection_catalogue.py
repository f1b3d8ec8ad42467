"""Advices on connections, metadata, logins and requests of any kind."""

from __future__ import annotations

from advise.registry.advice import Rank, advice

CONNECTION_PER_REQUEST = advice(
    "connection-per-request",
    Rank.COSTLY,
    "A new connection for each request",
    what="A client connects again and again, and asks a thing or two on each connection.",
    cost="Each connection costs handshakes of TCP, TLS and SASL, ApiVersions and Metadata; brokers "
    "limit connections by address and rate.",
    settings=(
        "one client for the process; connections.max.idle.ms above the pause between requests",
        "one rd_kafka_t for the process; connections.max.idle.ms",
        "one kgo.Client for the process; kgo.ConnIdleTimeout",
        "one sarama.Client for the process, shared by producers and consumers",
        "one client for the process; connections_max_idle_ms",
        "one Kafka client, connect() once",
    ),
    source="Kafka's documentation of connections.max.idle.ms; KIP-612 (rates of connections)",
    count=(20, "connections of a client to a broker"),
    seconds=(5, "seconds from the first to the last"),
    rate=(10, "connections a minute"),
    requests=(
        3,
        "requests of a connection beyond versions, login and metadata, at most",
    ),
)

METADATA_STORM = advice(
    "metadata-storm",
    Rank.COSTLY,
    "Metadata requested again and again",
    what="A client sends Metadata requests without a pause.",
    cost="A Metadata response is large, and made anew for each request: a storm of them slows the "
    "broker for all clients.",
    settings=(
        "metadata.max.age.ms=300000; retry.backoff.ms; look for errors of topics or leaders",
        "topic.metadata.refresh.interval.ms=300000; no list_topics() for each message",
        "kgo.MetadataMinAge and kgo.MetadataMaxAge",
        "Metadata.RefreshFrequency=10*time.Minute, Metadata.Retry.Backoff",
        "metadata_max_age_ms=300000, retry_backoff_ms",
        "metadataMaxAge: 300000, retry",
    ),
    source="Kafka's documentation of metadata.max.age.ms; KIP-580 (exponential backoff)",
    count=(30, "Metadata requests of a client"),
    seconds=(5, "seconds from the first to the last"),
    rate=(60, "Metadata requests a minute"),
)

MANY_TOPICS = advice(
    "many-topics",
    Rank.COSTLY,
    "Metadata of many topics in one request",
    what="A client asks for the metadata of all topics, or of very many.",
    cost="The response grows with all partitions of the cluster, and comes at each refresh.",
    settings=(
        "no subscribe(Pattern) and no listTopics() where names are known; re2j patterns of KIP-848",
        "topic.metadata.refresh.sparse=true; no topic patterns where names are known",
        "no kgo.ConsumeRegex where names are known",
        "Metadata.Full=false",
        "no subscribe(pattern=...) and no topics() where names are known",
        "topics by name in subscribe(), no admin.fetchTopicMetadata() without topics",
    ),
    source="Kafka's message definition of Metadata; KIP-848 (patterns at the broker)",
    count=(3, "such requests of a client"),
    topics=(200, "topics in a response"),
)

UNKNOWN_TOPIC_LOOP = advice(
    "unknown-topic-loop",
    Rank.COSTLY,
    "Requests for a topic that does not exist, again and again",
    what="A client goes on asking for a topic or partition that the broker does not know.",
    cost="Records wait or are lost, and each round costs a Metadata request.",
    settings=(
        "create the topic, or correct its name; max.block.ms limits the wait of send()",
        "create the topic, or correct its name; topic.metadata.propagation.max.ms",
        "create the topic, or kgo.UnknownTopicRetries",
        "create the topic; Metadata.Retry.Max",
        "create the topic; max_block_ms",
        "create the topic; retry.retries",
    ),
    source="Kafka's error codes: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID",
    count=(10, "refused requests of a client"),
    seconds=(3, "seconds from the first to the last"),
)

DENIED_LOOP = advice(
    "denied-loop",
    Rank.COSTLY,
    "Requests that are denied, again and again",
    what="A client goes on with requests for which it has no rights.",
    cost="Nothing is done; each request is checked against all rules, and goes to the audit log.",
    settings=(
        "rights for the principal (kafka-acls.sh); treat AuthorizationException as fatal",
        "rights for the principal; treat *_AUTHORIZATION_FAILED as fatal",
        "rights for the principal; stop at kerr.*AuthorizationFailed",
        "rights for the principal; stop at sarama.Err*AuthorizationFailed",
        "rights for the principal; treat *AuthorizationFailedError as fatal",
        "rights for the principal; restartOnFailure only for other errors",
    ),
    source="KIP-11; Kafka's error codes *_AUTHORIZATION_FAILED",
    count=(10, "denied requests of a client"),
    seconds=(3, "seconds from the first to the last"),
)

STALE_LEADER = advice(
    "stale-leader",
    Rank.COSTLY,
    "Requests to a broker that is not the leader, again and again",
    what="A client keeps sending to a broker that answers that it does not lead the partition.",
    cost="Records wait, and each round costs a request and a Metadata request.",
    settings=(
        "a client of 3.7 or later (KIP-951); retry.backoff.ms lower than the pause",
        "2.4 or later (KIP-951); topic.metadata.refresh.fast.interval.ms",
        "a current release; kgo.MetadataMinAge",
        "Metadata.Retry, Producer.Retry.Backoff",
        "retry_backoff_ms, metadata_max_age_ms",
        "retry, metadataMaxAge",
    ),
    source="KIP-951; Kafka's error codes NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH",
    count=(10, "refused requests of a client"),
    seconds=(5, "seconds from the first to the last"),
)

REAUTHENTICATION = advice(
    "reauthentication",
    Rank.COSTLY,
    "Logins that expire within seconds",
    what="The broker gives sessions a short lifetime, so that clients log in again and again.",
    cost="Each login costs round trips and, with SCRAM, thousands of hashes, while requests wait.",
    settings=(
        "connections.max.reauth.ms of the broker, or a token that lives longer",
        "connections.max.reauth.ms of the broker, or a token that lives longer",
        "connections.max.reauth.ms of the broker, or a token that lives longer",
        "connections.max.reauth.ms of the broker, or a token that lives longer",
        "connections.max.reauth.ms of the broker, or a token that lives longer",
        "reauthenticationThreshold, connections.max.reauth.ms of the broker",
    ),
    source="KIP-368",
    count=(1, "logins with a lifetime"),
    lifetime=(60, "seconds that a session lives, at least"),
)

HUNG_REQUESTS = advice(
    "hung-requests",
    Rank.RISKY,
    "Requests without an answer",
    what="Requests had no answer for as long as clients wait: none until the connection or the "
    "capture ended, or one that came too late. JoinGroup and SyncGroup, which wait for members, do "
    "not count, nor does a Fetch with an answer.",
    cost="The client waits for its timeout, closes the connection and sends again; records may be "
    "written twice without idempotence.",
    settings=(
        "request.timeout.ms, socket.connection.setup.timeout.ms; the broker's request queue",
        "socket.timeout.ms, socket.keepalive.enable=true",
        "kgo.RequestTimeoutOverhead, kgo.DialTimeout",
        "Net.ReadTimeout, Net.KeepAlive",
        "request_timeout_ms",
        "requestTimeout, enforceRequestTimeout: true",
    ),
    source="request.timeout.ms of Kafka; `unanswered` in kafkashark timeline has the cause",
    count=(1, "requests"),
    seconds=(30, "seconds without an answer"),
)

THROTTLING = advice(
    "throttling",
    Rank.COSTLY,
    "Clients slowed down by a quota",
    what="Brokers answer with a throttle time: the client has used up its quota.",
    cost="The broker does not read from the connection for so long; records wait.",
    settings=(
        "a higher quota (kafka-configs.sh), or less: compression, larger batches, fewer requests",
        "a higher quota, or compression.type and linger.ms",
        "a higher quota, or compression and larger batches",
        "a higher quota, or compression and larger batches",
        "a higher quota, or compression_type and linger_ms",
        "a higher quota, or compression and larger batches",
    ),
    source="KIP-13, KIP-124, KIP-219",
    count=(1, "throttled answers of a client"),
    milliseconds=(1000, "milliseconds of throttle time in sum"),
)
