import java.time.Duration;
import java.util.*;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.internals.*;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.message.StreamsGroupTopologyDescriptionUpdateRequestData.*;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * The consumer inside Kafka Streams, without Streams: it joins a streams group, sends the description of its topology
 * (KIP-1331) and leaves. Then Kafka 4.4's admin client asks about the group and for a controller; an error is an
 * answer too.
 */
public class StreamsGroup {
    interface Call {
        Object get() throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0], topic = arguments[1], group = topic + ".streams";
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap, "client.id", "streams-admin"))) {
            admin.createTopics(List.of(new NewTopic(topic, 2, (short) 1))).all().get();
            join(bootstrap, topic, group);
            DescribeStreamsGroupsOptions whole = new DescribeStreamsGroupsOptions().includeTopologyDescription(true);
            ask(() -> admin.describeStreamsGroups(List.of(group), whole).all().get());
            ask(() -> admin.deleteStreamsGroups(List.of(group)).all().get());
            ask(() -> admin.deleteConsumerGroups(List.of(topic + ".nobody")).all().get());
            ask(() -> admin.unregisterController(77).all().get());
        }
    }

    static void join(String bootstrap, String topic, String group) {
        StreamsRebalanceData data = new StreamsRebalanceData(
            UUID.randomUUID(), Optional.empty(), Optional.empty(),
            Map.of("0", new StreamsRebalanceData.Subtopology(Set.of(topic), Set.of(), Map.of(), Map.of(), List.of())),
            Map.of("zone", "a"), Map::of, Map::of);
        data.setWireTopologyDescription(described(topic));
        Map<String, Object> config = Map.of(
            "bootstrap.servers", bootstrap, "client.id", "streams-member", "group.id", group,
            "group.protocol", "consumer", "auto.offset.reset", "earliest", "enable.auto.commit", false,
            "key.deserializer", ByteArrayDeserializer.class, "value.deserializer", ByteArrayDeserializer.class);
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (AsyncKafkaConsumer<byte[], byte[]> consumer =
                new AsyncKafkaConsumer<>(new ConsumerConfig(config), bytes, bytes, Optional.of(data))) {
            Set<Integer> assigned = new HashSet<>();
            consumer.subscribe(Set.of(topic), new StreamsRebalanceListener() {
                public void onTasksAssigned(StreamsRebalanceData.Assignment assignment) {
                    assignment.activeTasks().forEach(task -> assigned.add(task.partitionId()));
                    data.setReconciledAssignment(assignment);
                }

                public void onTasksRevoked(Set<StreamsRebalanceData.TaskId> tasks) {
                }

                public void onAllTasksLost() {
                }
            });
            long deadline = System.nanoTime() + 90_000_000_000L;
            while (assigned.size() < 2) {
                consumer.poll(Duration.ofMillis(200));
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException("no task in 90 s: " + data.statuses());
                }
            }
            // A broker without a plugin that stores descriptions never asks for one.
            data.setTopologyPushRequired(true);
            while (data.topologyPushRequired() && System.nanoTime() < deadline) {
                consumer.poll(Duration.ofMillis(200));
            }
        }
    }

    static TopologyDescription described(String topic) {
        TopologyDescriptionNode source = new TopologyDescriptionNode().setName("source").setNodeType((byte) 1)
            .setSourceTopics(List.of(topic)).setSuccessors(List.of("sink"));
        TopologyDescriptionNode sink = new TopologyDescriptionNode().setName("sink").setNodeType((byte) 3)
            .setSinkTopic(topic + ".counts");
        return new TopologyDescription().setSubtopologies(List.of(
            new TopologyDescriptionSubtopology().setSubtopologyId("0").setNodes(List.of(source, sink))));
    }

    static void ask(Call call) throws Exception {
        try {
            System.out.println(call.get());
        } catch (ExecutionException error) {
            if (!(error.getCause() instanceof ApiException)) {
                throw error;
            }
            System.out.println(error.getCause());
        }
    }
}
