import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;

/** Every call of Kafka's admin client that 3.9 and 4.x have in common; an error is an answer too. */
public class AdminCalls {
    interface Call {
        Object get() throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        String name = arguments[1], topic = name + ".made", group = name + ".group";
        Map<String, Object> config = Map.of(
            "bootstrap.servers", arguments[0], "client.id", "java-admin",
            "request.timeout.ms", 5000, "default.api.timeout.ms", 8000);
        try (Admin admin = Admin.create(config)) {
            TopicPartition partition = new TopicPartition(topic, 0);
            ConfigResource topicResource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
            ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, "1");
            ConfigResource logger = new ConfigResource(ConfigResource.Type.BROKER_LOGGER, "1");
            AclBinding acl = new AclBinding(
                new ResourcePattern(ResourceType.TOPIC, topic, PatternType.PREFIXED),
                new AccessControlEntry("User:mallory", "*", AclOperation.READ, AclPermissionType.DENY));
            ClientQuotaEntity who = new ClientQuotaEntity(new HashMap<>(Map.of("client-id", "quoted")));
            ask("createTopics", () -> admin.createTopics(List.of(new NewTopic(topic, 2, (short) 1))).all().get());
            ask("createPartitions", () -> admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all().get());
            ask("listTopics", () -> admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get());
            ask("describeTopics", () -> admin.describeTopics(List.of(topic)).allTopicNames().get());
            ask("describeCluster", () -> admin.describeCluster(
                new DescribeClusterOptions().includeAuthorizedOperations(true)).nodes().get());
            ask("describeConfigs", () -> admin.describeConfigs(List.of(topicResource),
                new DescribeConfigsOptions().includeSynonyms(true)).all().get());
            ask("incrementalAlterConfigs", () -> admin.incrementalAlterConfigs(Map.of(topicResource, List.of(
                new AlterConfigOp(new ConfigEntry("cleanup.policy", "compact"), AlterConfigOp.OpType.APPEND)))).all().get());
            ask("incrementalAlterConfigs of a broker", () -> admin.incrementalAlterConfigs(Map.of(broker, List.of(
                new AlterConfigOp(new ConfigEntry("log.cleaner.threads", "1"), AlterConfigOp.OpType.SET)))).all().get());
            ask("incrementalAlterConfigs of a logger", () -> admin.incrementalAlterConfigs(Map.of(logger, List.of(
                new AlterConfigOp(new ConfigEntry("kafka.server", "INFO"), AlterConfigOp.OpType.SET)))).all().get());
            ask("createAcls", () -> admin.createAcls(List.of(acl)).all().get());
            ask("describeAcls", () -> admin.describeAcls(AclBindingFilter.ANY).values().get());
            ask("deleteAcls", () -> admin.deleteAcls(List.of(acl.toFilter())).all().get());
            ask("alterClientQuotas", () -> admin.alterClientQuotas(List.of(new ClientQuotaAlteration(who,
                List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1e9))))).all().get());
            ask("describeClientQuotas", () -> admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get());
            ask("alterUserScramCredentials", () -> admin.alterUserScramCredentials(List.of(
                new UserScramCredentialUpsertion("carol", new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096),
                    "secret-for-tests"))).all().get());
            ask("describeUserScramCredentials", () -> admin.describeUserScramCredentials().all().get());
            ask("describeLogDirs", () -> admin.describeLogDirs(List.of(1)).allDescriptions().get());
            ask("alterReplicaLogDirs", () -> admin.alterReplicaLogDirs(Map.of(
                new TopicPartitionReplica(topic, 0, 1), arguments[2])).all().get());
            ask("alterPartitionReassignments", () -> admin.alterPartitionReassignments(Map.of(partition,
                Optional.of(new NewPartitionReassignment(List.of(1))))).all().get());
            ask("listPartitionReassignments", () -> admin.listPartitionReassignments().reassignments().get());
            ask("electLeaders", () -> admin.electLeaders(ElectionType.UNCLEAN, Set.of(partition)).partitions().get());
            ask("listOffsets", () -> admin.listOffsets(Map.of(partition, OffsetSpec.latest())).all().get());
            ask("listOffsets earliest local", () -> admin.listOffsets(Map.of(partition, OffsetSpec.earliestLocal())).all().get());
            ask("listOffsets tiered", () -> admin.listOffsets(Map.of(partition, OffsetSpec.latestTiered())).all().get());
            ask("deleteRecords", () -> admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(0))).lowWatermarks());
            ask("alterConsumerGroupOffsets", () -> admin.alterConsumerGroupOffsets(group,
                Map.of(partition, new OffsetAndMetadata(0, "by hand"))).all().get());
            ask("listConsumerGroupOffsets", () -> admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get());
            ask("describeConsumerGroups", () -> admin.describeConsumerGroups(List.of(group, "nobody")).all().get());
            ask("listConsumerGroups", () -> admin.listConsumerGroups().all().get());
            ask("removeMembers", () -> admin.removeMembersFromConsumerGroup(group,
                new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("static-1")))).all().get());
            ask("deleteConsumerGroupOffsets", () -> admin.deleteConsumerGroupOffsets(group, Set.of(partition)).all().get());
            ask("deleteConsumerGroups", () -> admin.deleteConsumerGroups(List.of(group)).all().get());
            ask("describeFeatures", () -> admin.describeFeatures().featureMetadata().get());
            ask("updateFeatures", () -> admin.updateFeatures(Map.of("metadata.version",
                new FeatureUpdate((short) 999, FeatureUpdate.UpgradeType.UPGRADE)),
                new UpdateFeaturesOptions().validateOnly(true)).all().get());
            ask("describeMetadataQuorum", () -> admin.describeMetadataQuorum().quorumInfo().get());
            ask("addRaftVoter", () -> admin.addRaftVoter(7, Uuid.randomUuid(),
                Set.of(new RaftVoterEndpoint("CONTROLLER", "127.0.0.1", 1))).all().get());
            ask("removeRaftVoter", () -> admin.removeRaftVoter(7, Uuid.randomUuid()).all().get());
            ask("describeProducers", () -> admin.describeProducers(List.of(partition)).all().get());
            ask("fenceProducers", () -> admin.fenceProducers(List.of(name + ".tx")).all().get());
            ask("listTransactions", () -> admin.listTransactions().all().get());
            ask("describeTransactions", () -> admin.describeTransactions(List.of(name + ".tx")).all().get());
            ask("abortTransaction", () -> admin.abortTransaction(new AbortTransactionSpec(partition, 1L, (short) 0, 0)).all().get());
            ask("listClientMetricsResources", () -> admin.listClientMetricsResources().all().get());
            ask("clientInstanceId", () -> admin.clientInstanceId(java.time.Duration.ofMillis(500)));
            ask("createDelegationToken", () -> admin.createDelegationToken().delegationToken().get());
            ask("describeDelegationToken", () -> admin.describeDelegationToken().delegationTokens().get());
            ask("renewDelegationToken", () -> admin.renewDelegationToken(new byte[] {1, 2}).expiryTimestamp().get());
            ask("expireDelegationToken", () -> admin.expireDelegationToken(new byte[] {1, 2}).expiryTimestamp().get());
            ask("unregisterBroker", () -> admin.unregisterBroker(99).all().get());
            ask("deleteTopics", () -> admin.deleteTopics(List.of(topic)).all().get());
        }
    }

    static void ask(String what, Call call) {
        try {
            System.out.println(what + ": " + call.get());
        } catch (Exception error) {
            System.out.println(what + ": " + error);
        }
    }
}
