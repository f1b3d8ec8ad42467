import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

/** Java's producer and consumer: each codec, a transaction with offsets, an aborted one, both group protocols. */
public class Transactions {
    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0], topic = arguments[1];
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            try (Producer<String, String> producer = producer(bootstrap, "java-" + codec, Map.of("compression.type", codec))) {
                for (int number = 0; number < 5; number++) {
                    ProducerRecord<String, String> record =
                        new ProducerRecord<>(topic, "key-" + number, number == 3 ? null : codec + " value " + number);
                    record.headers().add("codec", codec.getBytes()).add("empty", new byte[0]).add("null", null);
                    producer.send(record);
                }
                producer.flush();
            }
        }
        for (String protocol : List.of("classic", "consumer")) {
            try (Consumer<String, String> consumer = consumer(bootstrap, topic + "." + protocol, protocol);
                 Producer<String, String> producer = producer(bootstrap, "java-tx",
                     Map.of("transactional.id", topic + ".tx." + protocol))) {
                consumer.subscribe(List.of(topic));
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                long deadline = System.nanoTime() + 90_000_000_000L;
                for (int got = 0; got < 25 && System.nanoTime() < deadline; ) {
                    for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(300))) {
                        offsets.put(new TopicPartition(record.topic(), record.partition()),
                            new OffsetAndMetadata(record.offset() + 1, "after " + record.key()));
                        got++;
                    }
                }
                producer.initTransactions();
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(topic + ".sink", "sum", protocol));
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                producer.commitTransaction();
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(topic + ".sink", "sum", "never")).get();
                producer.abortTransaction();
                consumer.commitSync();
            }
        }
    }

    static Producer<String, String> producer(String bootstrap, String name, Map<String, Object> more) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "client.id", name, "linger.ms", 20));
        config.putAll(more);
        return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    }

    static Consumer<String, String> consumer(String bootstrap, String group, String protocol) {
        return new KafkaConsumer<>(Map.of(
            "bootstrap.servers", bootstrap, "group.id", group, "client.id", "java-" + protocol,
            "group.protocol", protocol, "auto.offset.reset", "earliest", "enable.auto.commit", false,
            "isolation.level", "read_committed", "fetch.max.wait.ms", 200),
            new StringDeserializer(), new StringDeserializer());
    }
}
