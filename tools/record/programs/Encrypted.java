import java.io.FileReader;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

/** A producer and a consumer for each file of settings: TLS of different versions, in one JVM. */
public class Encrypted {
    public static void main(String[] arguments) throws Exception {
        String topic = arguments[0];
        for (int each = 1; each < arguments.length; each++) {
            Properties settings = new Properties();
            settings.load(new FileReader(arguments[each]));
            produce(settings, topic + "." + each);
            consume(settings, topic + "." + each);
        }
    }

    static void produce(Properties settings, String topic) throws Exception {
        try (Producer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int number = 0; number < 6; number++)
                producer.send(new ProducerRecord<>(topic, 0, "key-" + number, "value ".repeat(1 << number * 3 / 2)))
                    .get();
        }
    }

    static void consume(Properties settings, String topic) {
        Properties all = new Properties();
        all.putAll(settings);
        all.putAll(Map.of("auto.offset.reset", "earliest", "fetch.max.wait.ms", "200"));
        try (Consumer<String, String> consumer =
                new KafkaConsumer<>(all, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            long deadline = System.nanoTime() + 30_000_000_000L;
            for (int got = 0; got < 6 && System.nanoTime() < deadline; )
                got += consumer.poll(Duration.ofMillis(300)).count();
        }
    }
}
