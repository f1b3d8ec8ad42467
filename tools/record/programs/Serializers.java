import io.apicurio.registry.serde.avro.AvroKafkaDeserializer;
import io.apicurio.registry.serde.avro.AvroKafkaSerializer;
import java.time.Duration;
import java.util.*;
import org.apache.avro.Schema;
import org.apache.avro.generic.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.json.JsonConverter;

/** Apicurio's Avro serializer in its three ways, read again by its deserializer; a change event by Connect's JSON. */
public class Serializers {
    static final Schema ORDER = new Schema.Parser().parse(
        "{\"type\":\"record\",\"name\":\"Order\",\"namespace\":\"shop\",\"fields\":["
        + "{\"name\":\"id\",\"type\":\"long\"},"
        + "{\"name\":\"customer\",\"type\":[\"null\",\"string\"]},"
        + "{\"name\":\"items\",\"type\":{\"type\":\"array\",\"items\":\"string\"}}]}");
    static final Map<String, Map<String, Object>> WAYS = Map.of(
        "eight-bytes", Map.of(),
        "four-bytes", Map.of("apicurio.registry.id-handler", "io.apicurio.registry.serde.Legacy4ByteIdHandler"),
        "headers", Map.of("apicurio.registry.headers.enabled", true));

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0], topic = arguments[1], registry = arguments[2];
        for (String way : new TreeSet<>(WAYS.keySet())) {
            Map<String, Object> config = new HashMap<>(Map.of(
                "bootstrap.servers", bootstrap, "client.id", "apicurio-" + way, "linger.ms", 20,
                "apicurio.registry.url", registry + "/apis/registry/v2",
                "apicurio.registry.auto-register", true, "group.id", topic + "." + way,
                "auto.offset.reset", "earliest", "fetch.max.wait.ms", 200));
            config.putAll(WAYS.get(way));
            AvroKafkaSerializer<GenericRecord> serializer = new AvroKafkaSerializer<>();
            serializer.configure(config, false);
            try (Producer<String, GenericRecord> producer =
                    new KafkaProducer<>(config, new StringSerializer(), serializer)) {
                producer.send(new ProducerRecord<>(topic + "." + way, "1", order(1, "Ann", "lamp")));
                producer.send(new ProducerRecord<>(topic + "." + way, "2", order(-(1L << 40), null, "chair", "tisch")));
            }
            AvroKafkaDeserializer<GenericRecord> deserializer = new AvroKafkaDeserializer<>();
            deserializer.configure(config, false);
            try (Consumer<String, GenericRecord> consumer =
                    new KafkaConsumer<>(config, new StringDeserializer(), deserializer)) {
                consumer.subscribe(List.of(topic + "." + way));
                long deadline = System.nanoTime() + 60_000_000_000L;
                for (int got = 0; got < 2; ) {
                    got += consumer.poll(Duration.ofMillis(300)).count();
                    if (System.nanoTime() > deadline) throw new IllegalStateException("no records");
                }
            }
        }
        changeEvents(bootstrap, topic + ".changes");
    }

    static GenericRecord order(long id, String customer, String... items) {
        GenericRecord order = new GenericData.Record(ORDER);
        order.put("id", id);
        order.put("customer", customer);
        order.put("items", List.of(items));
        return order;
    }

    /** Debezium's envelope around a row, as its connectors hand it to Connect's converter. */
    static void changeEvents(String bootstrap, String topic) throws Exception {
        org.apache.kafka.connect.data.Schema row = SchemaBuilder.struct().name("shop.orders.Value").optional()
            .field("id", org.apache.kafka.connect.data.Schema.INT32_SCHEMA)
            .field("state", org.apache.kafka.connect.data.Schema.OPTIONAL_STRING_SCHEMA).build();
        org.apache.kafka.connect.data.Schema source = SchemaBuilder.struct().name("io.debezium.connector.postgresql.Source")
            .field("connector", org.apache.kafka.connect.data.Schema.STRING_SCHEMA)
            .field("table", org.apache.kafka.connect.data.Schema.STRING_SCHEMA)
            .field("lsn", org.apache.kafka.connect.data.Schema.INT64_SCHEMA).build();
        org.apache.kafka.connect.data.Schema envelope = SchemaBuilder.struct().name("shop.orders.Envelope")
            .field("before", row).field("after", row).field("source", source)
            .field("op", org.apache.kafka.connect.data.Schema.STRING_SCHEMA)
            .field("ts_ms", org.apache.kafka.connect.data.Schema.OPTIONAL_INT64_SCHEMA).build();
        Struct inserted = new Struct(row).put("id", 5).put("state", "NEW");
        Struct paid = new Struct(row).put("id", 5).put("state", "PAID");
        Struct from = new Struct(source).put("connector", "postgresql").put("table", "orders").put("lsn", 24023128L);
        JsonConverter converter = new JsonConverter();
        converter.configure(Map.of("schemas.enable", true), false);
        try (Producer<String, byte[]> producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", bootstrap, "client.id", "connector", "linger.ms", 20),
                new StringSerializer(), new ByteArraySerializer())) {
            Struct[][] changes = {{null, inserted}, {inserted, paid}, {paid, null}};
            String[] operations = {"c", "u", "d"};
            for (int number = 0; number < changes.length; number++) {
                Struct event = new Struct(envelope).put("before", changes[number][0]).put("after", changes[number][1])
                    .put("source", from).put("op", operations[number]).put("ts_ms", 1700000000000L);
                producer.send(new ProducerRecord<>(topic, "5", converter.fromConnectData(topic, envelope, event)));
            }
        }
    }
}
