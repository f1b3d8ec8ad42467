"""Advices on producers."""

from __future__ import annotations

from advise.registry.advice import Rank, advice

PRODUCER_PER_RECORD = advice(
    "producer-per-record",
    Rank.COSTLY,
    "A new producer for each record",
    what="A client opens producers one after the other, each for a few records.",
    cost="Each producer connects, logs in, asks for versions and metadata, and for a producer id "
    "if it is idempotent, before its first record; brokers keep the state of each producer id "
    "for a day.",
    settings=(
        "one KafkaProducer for the process, it is thread safe; close() at the end only",
        "one rd_kafka_t for the process; rd_kafka_destroy at the end only",
        "one kgo.Client for the process",
        "one AsyncProducer or SyncProducer for the process",
        "one KafkaProducer for the process; close() at the end only",
        "one producer, connect() once; disconnect() at the end only",
    ),
    source="Javadoc of KafkaProducer: one instance is faster; KIP-854 (producer.id.expiration.ms)",
    count=(10, "producers of a client, at the same broker"),
    seconds=(2, "seconds from the first to the last of them"),
    rate=(6, "producers a minute"),
    records=(5, "records of a producer, on average, at most"),
)

TINY_BATCHES = advice(
    "tiny-batches",
    Rank.COSTLY,
    "Produce requests with few records",
    what="A client sends many Produce requests within a short time, each with a record or two.",
    cost="A request costs broker and client about the same with one record as with a hundred: "
    "a header, a response, an append, replication. Small batches hardly compress.",
    settings=(
        "linger.ms=5 to 50, batch.size=65536; no flush() and no get() after each send()",
        "linger.ms=5 to 50; no rd_kafka_flush after each message",
        "kgo.ProducerLinger(10*time.Millisecond); Produce instead of ProduceSync for each record",
        "Producer.Flush.Frequency=10*time.Millisecond; AsyncProducer instead of SendMessage",
        "linger_ms=5 to 50; no flush() and no get() after each send()",
        "send() with many messages, or sendBatch(): kafkajs has no linger",
    ),
    source="Kafka's documentation of linger.ms and batch.size; KIP-1030 (linger.ms=5)",
    count=(100, "Produce requests of a client"),
    seconds=(5, "seconds from the first to the last"),
    rate=(20, "Produce requests a second on one connection"),
    records=(2, "records of a request, on average, at most"),
    linger_ms=(20, "milliseconds that requests would wait for each other"),
)

NO_COMPRESSION = advice(
    "no-compression",
    Rank.COSTLY,
    "Batches without compression",
    what="A client sends record batches without a codec, though their contents compress well.",
    cost="Records are sent, replicated, stored and fetched as the producer wrote them: every copy "
    "takes the whole size.",
    settings=(
        "compression.type=zstd, or lz4",
        "compression.type=zstd, or lz4",
        "kgo.ProducerBatchCompression(kgo.ZstdCompression())",
        "Producer.Compression=sarama.CompressionZSTD",
        "compression_type='zstd', or 'lz4'",
        "compression: CompressionTypes.GZIP of send(), or a codec for ZSTD",
    ),
    source="Kafka's documentation of compression.type; KIP-110 (zstd)",
    count=(100, "records without compression"),
    seconds=(5, "seconds from the first to the last"),
    bytes=(200_000, "bytes of batches without compression"),
    saving=(0.3, "part of the bytes that zstd saves on a sample, at least"),
)

NOT_IDEMPOTENT = advice(
    "not-idempotent",
    Rank.RISKY,
    "Producer without idempotence",
    what="A client sends record batches without a producer id.",
    cost="A request that is sent again after a lost answer writes its records twice, and several "
    "requests in flight may be written in another order.",
    settings=(
        "enable.idempotence=true (the default since 3.0), acks=all",
        "enable.idempotence=true (default: false)",
        "no kgo.DisableIdempotentWrite()",
        "Producer.Idempotent=true, RequiredAcks=WaitForAll, Net.MaxOpenRequests=1",
        "enable_idempotence=True",
        "kafka.producer({ idempotent: true, maxInFlightRequests: 1 })",
    ),
    source="KIP-98, KIP-679",
    count=(100, "records of a client"),
    share=(0.5, "part of its records without a producer id"),
)

ACKS_0 = advice(
    "acks-0",
    Rank.RISKY,
    "Producer that waits for no acknowledgement",
    what="A client sends Produce requests with acks=0.",
    cost="The broker answers nothing: records that it refuses or loses are lost without an error.",
    settings=(
        "acks=all",
        "request.required.acks=-1 (acks=all)",
        "kgo.RequiredAcks(kgo.AllISRAcks())",
        "Producer.RequiredAcks=sarama.WaitForAll",
        "acks='all'",
        "acks: -1 of send()",
    ),
    source="Kafka's documentation of acks",
    count=(20, "Produce requests of a client with acks=0"),
)

TOO_LARGE = advice(
    "too-large",
    Rank.RISKY,
    "Messages that are too large for the topic",
    what="Brokers refuse batches of a client as larger than the topic allows.",
    cost="The records are not written; clients split the batch, or give it up.",
    settings=(
        "max.request.size and batch.size below the topic's max.message.bytes; or compression.type",
        "message.max.bytes and batch.size below the topic's max.message.bytes",
        "kgo.ProducerBatchMaxBytes below the topic's max.message.bytes",
        "Producer.MaxMessageBytes below the topic's max.message.bytes",
        "max_request_size and batch_size below the topic's max.message.bytes",
        "smaller messages: kafkajs has no limit of its own",
    ),
    source="Kafka's documentation of max.message.bytes; KIP-126 (splitting of batches)",
    count=(1, "refused Produce requests"),
)

PARTITION_SKEW = advice(
    "partition-skew",
    Rank.COSTLY,
    "One partition has most of a topic's records",
    what="The records of a topic go mostly to one partition.",
    cost="One broker, one disk and one consumer do most of the work; others wait.",
    settings=(
        "keys of more values, or partitioner.ignore.keys=true; no own partitioner",
        "partitioner=murmur2_random, keys of more values",
        "kgo.RecordPartitioner(kgo.UniformBytesPartitioner(...)), keys of more values",
        "Producer.Partitioner=sarama.NewHashPartitioner, keys of more values",
        "keys of more values, no partition= in send()",
        "Partitioners.DefaultPartitioner, keys of more values, no partition in messages",
    ),
    source="KIP-480, KIP-794 (uniform partitioner)",
    count=(1000, "records of a topic"),
    seconds=(2, "seconds from the first to the last"),
    times=(2.5, "times of an equal share in the fullest partition"),
)

HOT_KEY = advice(
    "hot-key",
    Rank.COSTLY,
    "One key has most of a topic's records",
    what="Among sampled records of a topic one key is on most of them.",
    cost="All records of a key go to one partition: no number of partitions or consumers helps.",
    settings=(
        "a key of finer grain, such as customer and order, or no key where order does not matter",
        "a key of finer grain, or no key where order does not matter",
        "a Key of finer grain, or none where order does not matter",
        "a Key of finer grain, or none where order does not matter",
        "a key= of finer grain, or none where order does not matter",
        "a key of finer grain, or none where order does not matter",
    ),
    source="Kafka's documentation of partitioner.class: the records of a key go to one partition",
    count=(500, "sampled records with a key"),
    seconds=(2, "seconds from the first to the last record of the topic"),
    share=(0.4, "part of them with the most frequent key"),
)

OPEN_TRANSACTION = advice(
    "open-transaction",
    Rank.RISKY,
    "A transaction that stays open",
    what="A producer writes in a transaction, and ends it neither then nor later.",
    cost="Consumers with isolation.level=read_committed wait at its first record, and with them "
    "the whole partition, until transaction.timeout.ms has passed.",
    settings=(
        "commitTransaction() or abortTransaction() in finally; transaction.timeout.ms below 60000",
        "rd_kafka_commit_transaction or abort; transaction.timeout.ms below 60000",
        "EndTransaction in defer; kgo.TransactionTimeout below a minute",
        "CommitTxn or AbortTxn in defer; Producer.Transaction.Timeout below a minute",
        "commit_transaction() or abort_transaction() in finally; transaction_timeout_ms",
        "transaction.commit() or abort() in finally; transactionTimeout",
    ),
    source="KIP-98 (last stable offset), KIP-664 (hanging transactions)",
    seconds=(30, "seconds from its last write to the end of the capture"),
)
