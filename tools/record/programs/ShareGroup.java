import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;

/** A share group (KIP-932): two members that accept, release and reject records; its admin calls. */
public class ShareGroup {
    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0], topic = arguments[1], group = arguments[1] + ".group";
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap, "client.id", "share-admin"))) {
            admin.createTopics(List.of(new NewTopic(topic, 2, (short) 1))).all().get();
            admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, group), List.of(
                new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET))))
                .all().get();
            produce(bootstrap, topic);
            try (KafkaShareConsumer<String, String> first = member(bootstrap, group, "share-first");
                 KafkaShareConsumer<String, String> second = member(bootstrap, group, "share-second")) {
                first.subscribe(List.of(topic));
                second.subscribe(List.of(topic));
                Set<String> accepted = new HashSet<>();
                long deadline = System.nanoTime() + 90_000_000_000L;
                while (accepted.size() < 9 && System.nanoTime() < deadline) {
                    take(first, accepted);
                    take(second, accepted);
                }
                System.out.println("accepted " + accepted.size());
                System.out.println(admin.describeShareGroups(List.of(group)).all().get());
                System.out.println(admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec())).all().get());
            }
            System.out.println(admin.describeCluster(
                new DescribeClusterOptions().includeFencedBrokers(true)).nodes().get());
            System.out.println(admin.listGroups().all().get());
            admin.alterShareGroupOffsets(group, Map.of(new TopicPartition(topic, 0), 0L)).all().get();
            admin.deleteShareGroupOffsets(group, Set.of(topic)).all().get();
            admin.deleteShareGroups(List.of(group)).all().get();
            System.out.println(admin.listConfigResources(Set.of(), new ListConfigResourcesOptions()).all().get());
        }
    }

    static void produce(String bootstrap, String topic) throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "client.id", "share-producer");
        try (Producer<String, String> producer =
                new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            for (int number = 0; number < 10; number++) {
                producer.send(new ProducerRecord<>(topic, "key-" + number, "value-" + number)).get();
            }
        }
    }

    static KafkaShareConsumer<String, String> member(String bootstrap, String group, String name) {
        return new KafkaShareConsumer<>(Map.of(
            "bootstrap.servers", bootstrap, "group.id", group, "client.id", name,
            "share.acknowledgement.mode", "explicit", "fetch.max.wait.ms", 200),
            new StringDeserializer(), new StringDeserializer());
    }

    static void take(KafkaShareConsumer<String, String> member, Set<String> accepted) {
        for (ConsumerRecord<String, String> record : member.poll(Duration.ofMillis(300))) {
            boolean again = record.key().equals("key-3") && record.deliveryCount().orElse((short) 1) == 1;
            AcknowledgeType answer = again ? AcknowledgeType.RELEASE
                : record.key().equals("key-7") ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT;
            member.acknowledge(record, answer);
            if (answer == AcknowledgeType.ACCEPT) {
                accepted.add(record.key());
            }
        }
        member.commitSync();
    }
}
