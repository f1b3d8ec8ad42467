import com.fasterxml.jackson.databind.*;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

/** The steps of programs with Java's clients: PLANS.json USER PASSWORD. client_steps.py says what each step does. */
public class AdvisedClient {
    static final String TEXT = "{\"state\": \"accepted\", \"items\": 3, \"currency\": \"EUR\", \"customer\": \"the same again\"} ";
    static final List<Object> KEPT = Collections.synchronizedList(new ArrayList<>());
    static String user, password;

    final String name;
    final Map<String, Object> common = new HashMap<>(), producing = new HashMap<>(), consuming = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        user = arguments[1];
        password = arguments[2];
        JsonNode given = new ObjectMapper().readTree(new File(arguments[0]));
        Queue<String> failed = new ConcurrentLinkedQueue<>();
        ExecutorService pool = Executors.newFixedThreadPool(24);
        for (JsonNode program : given.get("programs")) {
            pool.submit(() -> {
                String name = program.get("name").asText();
                long begin = System.nanoTime();
                try {
                    new AdvisedClient(program, given.get("brokers")).run(program.get("steps"));
                } catch (Throwable error) { // the others go on
                    failed.add(name + ": " + error);
                }
                System.out.printf("%s: %.1f s%n", name, (System.nanoTime() - begin) / 1e9);
            });
        }
        pool.shutdown();
        pool.awaitTermination(10, TimeUnit.MINUTES);
        System.out.flush();
        failed.forEach(System.err::println);
        Runtime.getRuntime().halt(failed.isEmpty() ? 0 : 1); // without closing what was left open
    }

    AdvisedClient(JsonNode program, JsonNode brokers) {
        name = program.get("name").asText();
        put(common, program.get("common"));
        String listener = (String) common.getOrDefault("security.protocol", "PLAINTEXT");
        common.put("bootstrap.servers", brokers.get(listener).asText());
        common.put("client.id", name);
        if (common.containsKey("sasl.mechanism")) {
            String module = "PLAIN".equals(common.get("sasl.mechanism")) ? "plain.Plain" : "scram.Scram";
            common.put("sasl.jaas.config", "org.apache.kafka.common.security." + module + "LoginModule required username=\""
                + user + "\" password=\"" + password + "\";");
        }
        producing.putAll(common);
        producing.putAll(Map.of("acks", "all", "compression.type", "zstd", "linger.ms", 20, "enable.idempotence", true));
        put(producing, program.get("producer"));
        consuming.putAll(common);
        consuming.putAll(Map.of("group.id", name, "auto.offset.reset", "earliest"));
        put(consuming, program.get("consumer"));
    }

    static void put(Map<String, Object> settings, JsonNode given) {
        given.fields().forEachRemaining(each -> settings.put(each.getKey(), each.getValue().asText()));
    }

    void run(JsonNode steps) throws Exception {
        for (JsonNode step : steps) {
            JsonNode given = step.get(1);
            switch (step.get(0).asText()) {
                case "produce": produce(given); break;
                case "consume": consume(given); break;
                case "ask": ask(given); break;
                case "transact": transact(given); break;
                case "rivals": rivals(given); break;
                case "rejoin": rejoin(given); break;
                case "expelled": expelled(given); break;
                default: throw new IllegalArgumentException("unknown step " + step);
            }
        }
    }

    interface Doing { void run() throws Exception; }

    static void suppress(Doing doing) {
        try {
            doing.run();
        } catch (Exception expected) { // a mistake is made again and again
        }
    }

    static int number(JsonNode given, String key) {
        return given.path(key).asInt(0);
    }

    KafkaProducer<byte[], byte[]> producer(String transaction) {
        Map<String, Object> settings = new HashMap<>(producing);
        if (transaction != null) settings.put("transactional.id", transaction);
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    KafkaConsumer<byte[], byte[]> consumer(boolean isCommitting) {
        Map<String, Object> settings = new HashMap<>(consuming);
        if (isCommitting) settings.put("enable.auto.commit", "false");
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static ProducerRecord<byte[], byte[]> record(String topic, String text) {
        return new ProducerRecord<>(topic, text.getBytes(StandardCharsets.UTF_8));
    }

    void produce(JsonNode given) throws Exception {
        int count = number(given, "count"), each = number(given, "each"), keys = number(given, "keys"), size = given.path("size").asInt(100);
        String topic = given.path("topic").asText(name);
        KafkaProducer<byte[], byte[]> producer = null;
        for (int at = 0; at < count; at++) {
            if (producer == null) producer = producer(null);
            String key = at % 10 < number(given, "hot") ? "hot" : keys > 0 ? "key-" + at % keys : null;
            String text = (at + " " + TEXT.repeat(size / TEXT.length() + 1)).substring(0, size);
            Integer partition = at % 10 < number(given, "skew") ? 0 : null;
            KafkaProducer<byte[], byte[]> sender = producer;
            suppress(() -> sender.send(new ProducerRecord<>(topic, partition,
                key == null ? null : key.getBytes(StandardCharsets.UTF_8), text.getBytes(StandardCharsets.UTF_8))));
            if (each > 0 && (at + 1) % each == 0) {
                producer.flush();
                if (given.path("anew").asBoolean()) {
                    producer.close();
                    producer = null;
                }
                Thread.sleep(number(given, "pause_ms"));
            }
        }
        if (producer != null) producer.close();
    }

    void consume(JsonNode given) throws Exception {
        int commit = number(given, "commit"), got = 0, stall = number(given, "stall_s");
        long end = System.nanoTime() + number(given, "seconds") * 1_000_000_000L;
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(commit > 0)) {
            if (given.path("offset").isNumber()) {
                TopicPartition place = new TopicPartition(name, 0);
                consumer.assign(List.of(place));
                consumer.seek(place, given.get("offset").asLong());
            } else {
                consumer.subscribe(List.of(name));
            }
            while (System.nanoTime() < end) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(300))) {
                    got++;
                    Thread.sleep(number(given, "pause_ms"));
                    if (commit > 0 && got % commit == 0) commit(consumer, record.partition(), record.offset() + 1);
                }
                if (got > 0 && stall > 0) {
                    Thread.sleep(stall * 1000L);
                    stall = 0;
                }
            }
        }
    }

    void commit(KafkaConsumer<byte[], byte[]> consumer, int partition, long offset) {
        consumer.commitSync(Map.of(new TopicPartition(name, partition), new OffsetAndMetadata(offset)));
    }

    void ask(JsonNode given) throws Exception {
        Admin admin = null;
        for (int at = 0; at < number(given, "times"); at++) {
            if (admin == null) admin = Admin.create(common);
            if (given.path("is_all").asBoolean()) admin.listTopics().names().get();
            else admin.describeTopics(List.of(name)).topicNameValues().get(name).get();
            if (given.path("anew").asBoolean()) {
                admin.close();
                admin = null;
            }
            Thread.sleep(number(given, "pause_ms"));
        }
        if (admin != null) admin.close();
    }

    void transact(JsonNode given) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producer(name);
        KEPT.add(producer);
        boolean isEnded = given.path("is_ended").asBoolean();
        producer.initTransactions();
        for (int at = 0; at < number(given, "times"); at++) {
            producer.beginTransaction();
            producer.send(record(name, "amount")).get();
            if (isEnded) producer.commitTransaction();
        }
        if (isEnded) producer.close();
    }

    void rivals(JsonNode given) throws Exception {
        for (int number = 0; number < number(given, "rounds"); number++) {
            String id = name + "-" + number;
            KafkaProducer<byte[], byte[]> first = producer(id);
            first.initTransactions();
            first.beginTransaction();
            first.send(record(name, "amount")).get();
            KafkaProducer<byte[], byte[]> second = producer(given.path("is_same").asBoolean() ? id : id + "-other");
            second.initTransactions();
            suppress(() -> first.send(record(name, "amount")).get());
            suppress(first::commitTransaction);
            suppress(second::close);
            suppress(first::close);
        }
    }

    void rejoin(JsonNode given) throws Exception {
        long end = System.nanoTime() + number(given, "seconds") * 1_000_000_000L;
        int rounds = number(given, "rounds");
        try (KafkaConsumer<byte[], byte[]> first = consumer(false)) {
            first.subscribe(List.of(name));
            for (int number = 0; number < rounds; number++) {
                try (KafkaConsumer<byte[], byte[]> second = consumer(false)) {
                    second.subscribe(List.of(name));
                    while (second.assignment().isEmpty() || number == rounds - 1 && System.nanoTime() < end) {
                        first.poll(Duration.ofMillis(100));
                        second.poll(Duration.ofMillis(100));
                    }
                }
            }
        }
    }

    void expelled(JsonNode given) throws Exception {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(true)) {
            consumer.subscribe(List.of(name));
            for (int number = 0; number < number(given, "rounds"); number++) {
                long end = System.nanoTime() + 2_000_000_000L;
                while (System.nanoTime() < end || consumer.assignment().isEmpty()) consumer.poll(Duration.ofMillis(100));
                if (given.path("is_expelled").asBoolean()) {
                    Map<String, Object> settings = new HashMap<>(common);
                    settings.put("client.id", "operator");
                    try (Admin admin = Admin.create(settings)) {
                        admin.removeMembersFromConsumerGroup(name, new RemoveMembersFromConsumerGroupOptions()).all().get();
                    }
                }
                int offset = 5 * number + 5;
                suppress(() -> commit(consumer, 0, offset));
            }
        }
    }
}
