import java.io.*;
import java.lang.reflect.*;
import java.net.*;
import java.nio.ByteBuffer;
import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.protocol.*;

/**
 * Sends every API at every version that a broker offers, written by Kafka's own generated classes.
 *
 * Fields that a version knows get a plausible value, the others keep their default. An error is an
 * answer too; a broker that hangs up is connected to again.
 */
public class Sweep {
    static final int PATIENCE_MS = 6000;
    static String topic;
    static Uuid topicId;
    static int correlationId;
    static Socket socket;
    static int port;

    public static void main(String[] arguments) throws Exception {
        port = Integer.parseInt(arguments[0]);
        topic = arguments[1];
        topicId = Uuid.fromString(arguments[2]);
        int first = Integer.parseInt(arguments[3]), last = Integer.parseInt(arguments[4]);
        int answered = 0, lost = 0;
        for (ApiVersionsResponseData.ApiVersion offer : offers()) {
            if (offer.apiKey() < first || offer.apiKey() > last || !ApiKeys.hasId(offer.apiKey())) {
                continue;
            }
            ApiKeys api = ApiKeys.forId(offer.apiKey());
            int top = Math.min(offer.maxVersion(), api.messageType.highestSupportedVersion(true));
            // A broker may offer versions that it does not know any more (KAFKA-18659: Produce v0-v2).
            int bottom = Math.max(offer.minVersion(), api.messageType.lowestSupportedVersion());
            for (short version = (short) bottom; version <= top; version++) {
                try {
                    ask(api, version);
                    answered++;
                } catch (IOException none) {
                    System.out.println(api + " v" + version + ": " + none);
                    lost++;
                    socket.close();
                    socket = null;
                }
            }
        }
        System.out.println(answered + " answered, " + lost + " not");
    }

    static Iterable<ApiVersionsResponseData.ApiVersion> offers() throws Exception {
        ByteBuffer answer = exchange(ApiKeys.API_VERSIONS, (short) 0, new ApiVersionsRequestData());
        return new ApiVersionsResponseData(new ByteBufferAccessor(answer), (short) 0).apiKeys();
    }

    static void ask(ApiKeys api, short version) throws Exception {
        ApiMessage request = api.messageType.newRequest();
        fill(request, request, api, version);
        exchange(api, version, request);
    }

    static ByteBuffer exchange(ApiKeys api, short version, ApiMessage request) throws Exception {
        short headerVersion = api.messageType.requestHeaderVersion(version);
        RequestHeaderData header = new RequestHeaderData().setRequestApiKey(api.id)
            .setRequestApiVersion(version).setCorrelationId(++correlationId).setClientId("sweep");
        ByteBuffer head = written(header, headerVersion), body = written(request, version);
        if (socket == null) {
            socket = new Socket("127.0.0.1", port);
            socket.setSoTimeout(PATIENCE_MS);
            socket.setTcpNoDelay(true);
        }
        ByteBuffer frame = ByteBuffer.allocate(4 + head.remaining() + body.remaining());
        frame.putInt(head.remaining() + body.remaining()).put(head).put(body);
        socket.getOutputStream().write(frame.array());
        DataInputStream in = new DataInputStream(socket.getInputStream());
        byte[] answer = new byte[in.readInt()];
        in.readFully(answer);
        ByteBuffer buffer = ByteBuffer.wrap(answer);
        new ResponseHeaderData(new ByteBufferAccessor(buffer), api.messageType.responseHeaderVersion(version));
        return buffer;
    }

    /** Gives each field a value, and takes it back where the message can not be written with it. */
    static void fill(Object part, ApiMessage root, ApiKeys api, short version) throws Exception {
        for (Field field : part.getClass().getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) || field.getName().matches("_unknownTaggedFields|next|prev")) {
                continue;
            }
            field.setAccessible(true);
            Object before = field.get(part);
            Object value = value(field, before, api, version);
            if (value == null) {
                continue;
            }
            field.set(part, value);
            if (!writable(root, version)) {
                field.set(part, before);
            } else if (value instanceof Collection<?> items) {
                for (Object item : items) {
                    if (item instanceof Message) {
                        fill(item, root, api, version);
                    }
                }
            } else if (value instanceof Message) {
                fill(value, root, api, version);
            }
        }
    }

    static ByteBuffer written(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBufferAccessor out = new ByteBufferAccessor(ByteBuffer.allocate(message.size(cache, version)));
        message.write(out, cache, version);
        return out.buffer().flip();
    }

    static boolean writable(ApiMessage root, short version) {
        try {
            written(root, version);
            return true;
        } catch (UnsupportedVersionException | NullPointerException not) {
            return false;
        }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static Object value(Field field, Object before, ApiKeys api, short version) throws Exception {
        Class<?> type = field.getType();
        String name = field.getName(), lower = name.toLowerCase(Locale.ROOT);
        if (type == String.class) {
            return text(lower, api, version);
        } else if (type == Uuid.class) {
            return lower.contains("topic") ? topicId : null;
        } else if (type == int.class) {
            return switch (name) {
                case "timeoutMs", "maxWaitMs" -> 500;
                case "sessionTimeoutMs", "rebalanceTimeoutMs", "transactionTimeoutMs" -> 6000;
                case "maxBytes", "partitionMaxBytes" -> 65536;
                case "numPartitions", "maxNumOffsets", "count" -> 1;
                default -> null;
            };
        } else if (type == byte.class) {
            // ACLs: a topic, literal, READ, ALLOW; everything else keeps its default.
            boolean three = lower.contains("pattern") || lower.matches("operation|permissiontype");
            return lower.startsWith("resourcetype") ? (Object) (byte) 2 : three ? (Object) (byte) 3 : null;
        } else if (type == short.class) {
            return name.equals("acks") || name.equals("replicationFactor") ? (short) 1 : null;
        } else if (type.getSimpleName().equals("BaseRecords")) {
            return records(type.getPackageName(), (byte) (version < 2 ? 0 : version < 3 ? 1 : 2));
        } else if (List.class.isAssignableFrom(type)) {
            Type of = ((ParameterizedType) field.getGenericType()).getActualTypeArguments()[0];
            return new ArrayList<>(List.of(item(of, lower)));
        } else if (isLinked(type) && !lower.equals("assignments")) {
            Type of = ((ParameterizedType) type.getGenericSuperclass()).getActualTypeArguments()[0];
            Collection made = (Collection) type.getDeclaredConstructor().newInstance();
            made.add(item(of, lower));
            return made;
        }
        return null;
    }

    /** Whether it is Kafka's own collection of items with keys; its package is another since 4.4. */
    static boolean isLinked(Class<?> type) {
        for (Class<?> each = type; each != null; each = each.getSuperclass()) {
            if (each.getSimpleName().equals("ImplicitLinkedHashCollection")) return true;
        }
        return false;
    }

    /** One record; the package of these classes is another in each release line. */
    static Object records(String where, byte magic) throws Exception {
        Class<?> kind = Class.forName(where + ".SimpleRecord");
        Object some = Array.newInstance(kind, 1);
        Array.set(some, 0, kind.getConstructor(long.class, byte[].class, byte[].class)
            .newInstance(1_700_000_000_000L, "key".getBytes(), "value".getBytes()));
        return Class.forName(where + ".MemoryRecords")
            .getMethod("withRecords", byte.class, Compression.class, some.getClass())
            .invoke(null, magic, Compression.NONE, some);
    }

    static Object item(Type of, String field) throws Exception {
        if (of == Integer.class) {
            return field.contains("broker") || field.contains("replica") ? 1 : 0;
        } else if (of == String.class) {
            return field.contains("group") ? topic + ".group" : topic;
        } else if (of == Uuid.class) {
            return topicId;
        } else if (of instanceof Class<?> known && Message.class.isAssignableFrom(known)) {
            return known.getDeclaredConstructor().newInstance();
        }
        return of == Long.class ? (Object) 0L : of == Short.class ? (Object) (short) 1 : (Object) (byte) 0;
    }

    static String text(String field, ApiKeys api, short version) {
        if (field.contains("group") && !field.contains("instance")) {
            return topic + "." + api.id + "." + version;
        } else if (field.contains("transactional")) {
            return topic + ".tx";
        } else if (field.contains("member") || field.contains("clusterid")) {
            return null;
        } else if (api == ApiKeys.CREATE_TOPICS && field.equals("name")) {
            return topic + "." + version;
        } else if (field.contains("topic") || field.contains("name") && !field.contains("principal")) {
            return topic;
        } else if (field.contains("principal")) {
            return "User:sweep";
        } else if (field.contains("host")) {
            return "127.0.0.1";
        }
        return field.contains("protocol") ? "consumer" : "sweep";
    }
}
