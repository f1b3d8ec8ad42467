import java.util.*;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.errors.ApiException;

/** What the admin client of Kafka 4.4 asks of a streams group and of controllers; an error is an answer too. */
public class StreamsAdmin {
    interface Call {
        Object get() throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        List<String> groups = List.of(arguments[1]);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0], "client.id", "streams-admin"))) {
            ask(() -> admin.describeStreamsGroups(groups,
                new DescribeStreamsGroupsOptions().includeTopologyDescription(true)).all().get());
            ask(() -> admin.listStreamsGroupOffsets(
                Map.of(arguments[1], new ListStreamsGroupOffsetsSpec())).all().get());
            ask(() -> admin.deleteStreamsGroups(groups).all().get());
            ask(() -> admin.deleteConsumerGroups(List.of("nobody")).all().get());
            ask(() -> admin.unregisterController(77).all().get());
        }
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
