import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.*;

/** Services with Java's client: BOOTSTRAP TOPIC SECONDS; the pace is that of python_clients.py. */
public class WellBehaved {
    static final long SECOND = 1_000_000_000L;

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0], topic = arguments[1];
        long begin = System.nanoTime(), end = begin + (long) (Double.parseDouble(arguments[2]) * SECOND);
        Thread consuming = new Thread(() -> {
            while (System.nanoTime() < end - SECOND) consume(bootstrap, topic, Math.min(end, System.nanoTime() + 600 * SECOND));
        });
        consuming.start();
        Thread copying = new Thread(() -> {
            try (Producer<String, String> producer = new KafkaProducer<>(producing(bootstrap, "java-transactions",
                    Map.of("transactional.id", topic + ".totals")), new StringSerializer(), new StringSerializer())) {
                producer.initTransactions();
                for (int number = 0; System.nanoTime() < end; number++) {
                    producer.beginTransaction();
                    for (int each = 0; each < 50; each++) {
                        producer.send(new ProducerRecord<>(topic + ".totals", "customer-" + (number * 50 + each), "total " + number));
                    }
                    producer.commitTransaction();
                    Thread.sleep(5000);
                }
            } catch (InterruptedException interrupted) {
                throw new RuntimeException(interrupted);
            }
        });
        copying.start();
        try (Producer<String, String> producer = new KafkaProducer<>(
                producing(bootstrap, "java-producer", Map.of()), new StringSerializer(), new StringSerializer())) {
            long nextBurst = begin + 30 * SECOND;
            for (int number = 0; System.nanoTime() < end; ) {
                int count = 10;
                if (System.nanoTime() >= nextBurst) {
                    count = 1000;
                    nextBurst += 30 * SECOND;
                }
                for (int last = number + count; number < last; number++) {
                    String value = "{\"order\": " + number + ", \"customer\": " + number * 7919L % 5003 + ", \"state\": \"accepted\", \"items\": 3}";
                    producer.send(new ProducerRecord<>(topic, "order-" + number, value));
                }
                Thread.sleep(500);
            }
        }
        copying.join();
        consuming.join();
    }

    static Map<String, Object> producing(String bootstrap, String name, Map<String, Object> more) {
        Map<String, Object> config = new HashMap<>(Map.of(
            "bootstrap.servers", bootstrap, "client.id", name, "linger.ms", 100, "compression.type", "zstd"));
        config.putAll(more);
        return config;
    }

    static void consume(String bootstrap, String topic, long until) {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "client.id", "java-consumer",
            "group.id", topic + ".billing", "group.protocol", "consumer", "auto.offset.reset", "earliest");
        try (Consumer<String, String> consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic, topic + ".totals"));
            while (System.nanoTime() < until) consumer.poll(Duration.ofMillis(500));
        }
    }
}
