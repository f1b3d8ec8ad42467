import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.OptionalLong;
import java.util.stream.Stream;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.TimestampType;

/**
 * What Kafka's own code makes of bytes. Runs from source: {@code java -cp 'JARS/*' Oracle.java}.
 *
 * <p>Reads one JSON object a line and answers each with one: {@code {"task": "message", ...}} reads
 * and writes again a body by Kafka's generated classes, {@code "versions"} tells which versions they
 * know, {@code "headers"} which headers go with a version; {@code "read"} reads a records field,
 * {@code "write"} writes one. Bytes are base64. An answer is {@code {"unknown": why}} where this
 * release has no such message or version, {@code {"error": why}} where Kafka refuses.
 *
 * <p>Releases keep their classes for records in different packages, hence the reflection.
 */
public final class Oracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String[] GENERATED = {
        "org.apache.kafka.common.message.",
        "org.apache.kafka.common.metadata.",
        "org.apache.kafka.coordinator.group.generated.",
        "org.apache.kafka.coordinator.share.generated.",
        "org.apache.kafka.coordinator.transaction.generated.",
        "org.apache.kafka.server.log.remote.metadata.storage.generated.",
    };
    private static final String[] RECORDS = {
        "org.apache.kafka.common.record.internal.", "org.apache.kafka.common.record.",
    };

    private static final class UnknownException extends RuntimeException {
        UnknownException(String what) {
            super(what);
        }
    }

    public static void main(String[] arguments) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
            out.flush();
        }
    }

    private static ObjectNode answer(JsonNode job) {
        ObjectNode out = JSON.createObjectNode();
        try {
            switch (job.get("task").asText()) {
                case "versions" -> versions(job, out);
                case "headers" -> headerVersions(job, out);
                case "message" -> message(job, out);
                case "read" -> readRecords(job, out);
                case "write" -> out.put("bytes", writeRecords(job));
                default -> throw new IllegalArgumentException("no such task");
            }
        } catch (UnknownException | UnsupportedVersionException unknown) {
            out.put("unknown", unknown.getMessage());
        } catch (Exception error) {
            Throwable cause = error instanceof InvocationTargetException ? error.getCause() : error;
            out.put("error", cause.toString());
        }
        return out;
    }

    // ---- messages ----

    private static void versions(JsonNode job, ObjectNode out) throws Exception {
        Message message = empty(job);
        out.put("low", message.lowestSupportedVersion()).put("high", message.highestSupportedVersion());
    }

    private static void headerVersions(JsonNode job, ObjectNode out) {
        ApiMessageType type = ApiMessageType.fromApiKey((short) job.get("api_key").asInt());
        short version = (short) job.get("version").asInt();
        out.put("request", type.requestHeaderVersion(version));
        out.put("response", type.responseHeaderVersion(version));
    }

    private static void message(JsonNode job, ObjectNode out) throws Exception {
        Message message = empty(job);
        short version = (short) job.get("version").asInt();
        if (version < message.lowestSupportedVersion() || version > message.highestSupportedVersion()) {
            throw new UnknownException("version " + version);
        }
        ByteBuffer bytes = ByteBuffer.wrap(job.get("bytes").binaryValue());
        message.read(new ByteBufferAccessor(bytes), version);
        out.put("left", bytes.remaining());
        out.set("value", converted(message, version));
        var cache = new ObjectSerializationCache();
        ByteBuffer again = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(again), cache, version);
        out.put("bytes", again.array());
    }

    private static Message empty(JsonNode job) throws Exception {
        if (job.has("name")) {
            return (Message) found(job.get("name").asText(), GENERATED).getConstructor().newInstance();
        }
        ApiMessageType type = ApiMessageType.fromApiKey((short) job.get("api_key").asInt());
        return job.get("kind").asText().equals("request") ? type.newRequest() : type.newResponse();
    }

    private static JsonNode converted(Message message, short version) throws Exception {
        Class<?> converter = Class.forName(message.getClass().getName() + "JsonConverter");
        // The values of records are not told, only their size; they are in what is written again.
        return (JsonNode) converter
            .getMethod("write", message.getClass(), short.class, boolean.class)
            .invoke(null, message, version, false);
    }

    private static Class<?> found(String name, String[] packages) {
        for (String each : packages) {
            try {
                return Class.forName(each + name);
            } catch (ClassNotFoundException elsewhere) {
                continue;
            }
        }
        throw new UnknownException("class " + name);
    }

    // ---- records ----

    private static void readRecords(JsonNode job, ObjectNode out) throws Exception {
        ByteBuffer bytes = ByteBuffer.wrap(job.get("bytes").binaryValue());
        Class<?> memory = found("MemoryRecords", RECORDS);
        Object records = memory.getMethod("readableRecords", ByteBuffer.class).invoke(null, bytes);
        ArrayNode batches = out.putArray("batches");
        for (Object batch : (Iterable<?>) memory.getMethod("batches").invoke(records)) {
            ObjectNode told = described(batch, found("RecordBatch", RECORDS));
            ArrayNode inside = told.putArray("records");
            for (Object record : (Iterable<?>) batch) {
                inside.add(described(record, found("Record", RECORDS)));
            }
            batches.add(told);
        }
    }

    /** Lists all that an object says of itself through an interface: its getters and what they give. */
    private static ObjectNode described(Object object, Class<?> type) throws Exception {
        ObjectNode out = JSON.createObjectNode();
        for (Method getter : type.getMethods()) {
            if (getter.getParameterCount() == 0 && getter.getReturnType() != void.class && !Modifier.isStatic(getter.getModifiers())) {
                put(out, getter.getName(), getter.invoke(object));
            }
        }
        return out;
    }

    private static void put(ObjectNode out, String name, Object value) {
        if (value instanceof Header[] headers) {
            ArrayNode array = out.putArray(name);
            for (Header header : headers) {
                array.addArray().add(header.key()).add(header.value());
            }
        } else if (value instanceof ByteBuffer bytes) {
            byte[] copy = new byte[bytes.remaining()];
            bytes.duplicate().get(copy);
            out.put(name, copy);
        } else if (value instanceof OptionalLong number) {
            out.set(name, JSON.valueToTree(number.isPresent() ? number.getAsLong() : null));
        } else if (value instanceof Number || value instanceof Boolean || value == null) {
            out.set(name, JSON.valueToTree(value));
        } else if (value instanceof Enum<?> word) {
            out.put(name, word.name());
        }
    }

    private static byte[] writeRecords(JsonNode job) throws Exception {
        Object builder = builder(job);
        Method append = builder.getClass().getMethod(
            "append", long.class, byte[].class, byte[].class, Header[].class);
        for (JsonNode record : job.get("records")) {
            if (record.has("message")) {
                appendControl(builder, record);
            } else {
                append.invoke(builder, record.get("timestamp").asLong(),
                    record.get("key").binaryValue(), record.get("value").binaryValue(), headers(record));
            }
        }
        Object records = builder.getClass().getMethod("build").invoke(builder);
        ByteBuffer bytes = (ByteBuffer) records.getClass().getMethod("buffer").invoke(records);
        byte[] copy = new byte[bytes.remaining()];
        bytes.get(copy);
        return copy;
    }

    private static Object builder(JsonNode job) throws Exception {
        Method longest = Stream.of(found("MemoryRecords", RECORDS).getMethods())
            .filter(method -> method.getName().equals("builder") && method.getParameterCount() == 12)
            .filter(method -> method.getParameterTypes()[10] == boolean.class)
            .findFirst().orElseThrow();
        return longest.invoke(null,
            ByteBuffer.allocate(1 << 16),
            (byte) job.get("magic").asInt(),
            Compression.of(job.get("codec").asText()).build(),
            TimestampType.forName(job.get("timestamp_type").asText()),
            job.get("base_offset").asLong(),
            job.get("append_time").asLong(),
            job.get("producer_id").asLong(),
            (short) job.get("producer_epoch").asInt(),
            job.get("base_sequence").asInt(),
            job.get("transactional").asBoolean(),
            job.get("control").asBoolean(),
            job.get("partition_leader_epoch").asInt());
    }

    private static Header[] headers(JsonNode record) throws Exception {
        JsonNode all = record.get("headers");
        Header[] out = new Header[all.size()];
        for (int i = 0; i < out.length; i++) {
            out[i] = new RecordHeader(all.get(i).get(0).asText(), all.get(i).get(1).binaryValue());
        }
        return out;
    }

    /** Appends a control record by the builder's own method for what it says. */
    private static void appendControl(Object builder, JsonNode record) throws Exception {
        Object message = record.get("message").asText().equals("EndTransactionMarker")
            ? endMarker(record.get("value")) : unconverted(record);
        for (Method append : builder.getClass().getMethods()) {
            Class<?>[] types = append.getParameterTypes();
            if (types.length == 2 && types[0] == long.class && types[1] == message.getClass()) {
                append.invoke(builder, record.get("timestamp").asLong(), message);
                return;
            }
        }
        throw new UnknownException("control record " + record.get("message").asText());
    }

    private static Object endMarker(JsonNode value) throws Exception {
        Class<?> type = found("ControlRecordType", RECORDS);
        Object word = type.getMethod("valueOf", String.class).invoke(null, value.get("type").asText());
        return found("EndTransactionMarker", RECORDS)
            .getConstructor(type, int.class)
            .newInstance(word, value.get("coordinatorEpoch").asInt());
    }

    private static Object unconverted(JsonNode record) throws Exception {
        return found(record.get("message").asText() + "JsonConverter", GENERATED)
            .getMethod("read", JsonNode.class, short.class)
            .invoke(null, record.get("value"), (short) record.get("version").asInt());
    }
}
