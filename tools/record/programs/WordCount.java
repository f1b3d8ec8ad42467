import java.nio.file.*;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.*;

/** Kafka Streams: two instances count words exactly once; with a classic or a streams group (KIP-1071). */
public class WordCount {
    static final int LINES = 20;

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0], topic = arguments[1], protocol = arguments[2];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap, "client.id", "counts-admin"))) {
            admin.createTopics(List.of(new NewTopic(topic, 2, (short) 1), new NewTopic(topic + ".counts", 2, (short) 1)))
                .all().get();
        }
        Path folder = Files.createTempDirectory("kafkashark-streams-");
        produce(bootstrap, topic);
        try (KafkaStreams one = instance(arguments, "one", folder); KafkaStreams two = instance(arguments, "two", folder)) {
            one.start();
            await(bootstrap, topic, 1);
            two.start();
            while (two.state() != KafkaStreams.State.RUNNING) {
                Thread.sleep(50);
            }
            produce(bootstrap, topic);
            await(bootstrap, topic, 2);
            two.close(Duration.ofSeconds(20));
            one.close(Duration.ofSeconds(20));
        }
    }

    static KafkaStreams instance(String[] arguments, String name, Path folder) {
        String topic = arguments[1];
        Properties config = new Properties();
        config.put("bootstrap.servers", arguments[0]);
        config.put("application.id", topic + ".words");
        config.put("client.id", "counts-" + name);
        config.put("state.dir", folder.resolve(name).toString());
        config.put("processing.guarantee", "exactly_once_v2");
        config.put("commit.interval.ms", "200");
        config.put("consumer.auto.offset.reset", "earliest");
        if (!arguments[2].equals("classic")) {
            config.put("group.protocol", arguments[2]);
        }
        StreamsBuilder builder = new StreamsBuilder();
        Materialized<String, Long, KeyValueStore<Bytes, byte[]>> store =
            Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long());
        builder.stream(topic, Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> List.of(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(store)
            .toStream().to(topic + ".counts", Produced.with(Serdes.String(), Serdes.Long()));
        return new KafkaStreams(builder.build(), config);
    }

    static void produce(String bootstrap, String topic) throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "client.id", "counts-producer");
        try (Producer<String, String> producer =
                new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            for (int number = 0; number < LINES; number++) {
                producer.send(new ProducerRecord<>(topic, "line-" + number, "all lamp chair-" + number % 5)).get();
            }
        }
    }

    /** Wait until all lines of so many rounds are counted. */
    static void await(String bootstrap, String topic, long rounds) throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "client.id", "counts-reader-" + rounds,
            "group.id", topic + ".reader-" + rounds, "auto.offset.reset", "earliest",
            "isolation.level", "read_committed", "fetch.max.wait.ms", 200);
        long deadline = System.nanoTime() + 120_000_000_000L, counted = 0;
        try (Consumer<String, Long> reader =
                new KafkaConsumer<>(config, new StringDeserializer(), new LongDeserializer())) {
            reader.subscribe(List.of(topic + ".counts"));
            while (counted < rounds * LINES) {
                for (ConsumerRecord<String, Long> each : reader.poll(Duration.ofMillis(200))) {
                    counted = each.key().equals("all") ? Math.max(counted, each.value()) : counted;
                }
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException("counted " + counted + " of " + rounds * LINES);
                }
            }
        }
    }
}
