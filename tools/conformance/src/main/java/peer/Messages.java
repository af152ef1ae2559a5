package peer;

import com.alibaba.fastjson2.JSONArray;
import com.alibaba.fastjson2.JSONObject;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageExtBatch;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.store.PutMessageResult;

/** Messages to and from JSON. Bytes are base64. */
final class Messages {
    private static final Base64.Encoder ENCODER = Base64.getEncoder();
    private static final Base64.Decoder DECODER = Base64.getDecoder();
    private static final String HOST = "127.0.0.1:10911";

    private Messages() {
    }

    static byte[] bytes(JSONObject o, String name) {
        String s = o.getString(name);
        return s == null ? new byte[0] : DECODER.decode(s);
    }

    static String base64(byte[] b) {
        return ENCODER.encodeToString(b);
    }

    static String base64(ByteBuffer b) {
        byte[] copy = new byte[b.remaining()];
        b.duplicate().get(copy);
        return base64(copy);
    }

    /** "1.2.3.4:5" or "[::1]:5"; never a name, which would be looked up. */
    static SocketAddress host(String s) throws UnknownHostException {
        String text = s == null ? HOST : s;
        int colon = text.lastIndexOf(':');
        String address = text.substring(0, colon);
        if (address.startsWith("[")) {
            address = address.substring(1, address.length() - 1);
        }
        return new InetSocketAddress(InetAddress.getByName(address), Integer.parseInt(text.substring(colon + 1)));
    }

    private static void fill(MessageExtBrokerInner m, JSONObject o) throws UnknownHostException {
        m.setTopic(o.getString("topic"));
        m.setQueueId(o.getIntValue("queue"));
        m.setFlag(o.getIntValue("flag"));
        m.setSysFlag(o.getIntValue("sysFlag"));
        m.setBornTimestamp(o.getLongValue("born"));
        m.setBornHost(host(o.getString("bornHost")));
        m.setStoreHost(host(o.getString("storeHost")));
        m.setReconsumeTimes(o.getIntValue("reconsume"));
        m.setPreparedTransactionOffset(o.getLongValue("prepared"));
    }

    /** The properties string is stored as it is given; the map is what Java reads out of it. */
    static MessageExtBrokerInner message(JSONObject o) throws UnknownHostException {
        MessageExtBrokerInner m = new MessageExtBrokerInner();
        fill(m, o);
        m.setBody(bytes(o, "body"));
        String props = new String(bytes(o, "props"), StandardCharsets.UTF_8);
        Map<String, String> map = MessageDecoder.string2messageProperties(props);
        MessageAccessor.setProperties(m, map);
        m.setPropertiesString(props);
        m.setTagsCode(MessageExtBrokerInner.tagsString2tagsCode(m.getTags()));
        return m;
    }

    /** A producer's batch: each of "messages" has flag, body and props of its own. */
    static MessageExtBatch batch(JSONObject o) throws UnknownHostException {
        MessageExtBatch m = new MessageExtBatch();
        fill(m, o);
        JSONArray all = o.getJSONArray("messages");
        int size = 0;
        for (int i = 0; i < all.size(); i++) {
            JSONObject one = all.getJSONObject(i);
            size += 22 + bytes(one, "body").length + bytes(one, "props").length;
        }
        ByteBuffer b = ByteBuffer.allocate(size);
        for (int i = 0; i < all.size(); i++) {
            JSONObject one = all.getJSONObject(i);
            byte[] body = bytes(one, "body");
            byte[] props = bytes(one, "props");
            b.putInt(22 + body.length + props.length).putInt(0).putInt(0).putInt(one.getIntValue("flag"));
            b.putInt(body.length).put(body).putShort((short) props.length).put(props);
        }
        m.setBody(b.array());
        return m;
    }

    static JSONObject result(PutMessageResult r) {
        JSONObject o = new JSONObject();
        o.put("status", String.valueOf(r.getPutMessageStatus()));
        var a = r.getAppendMessageResult();
        if (a == null) {
            return o;
        }
        o.put("append", String.valueOf(a.getStatus()));
        o.put("phy", a.getWroteOffset());
        o.put("size", a.getWroteBytes());
        o.put("offset", a.getLogicsOffset());
        o.put("count", a.getMsgNum());
        o.put("stored", a.getStoreTimestamp());
        try {
            o.put("id", a.getMsgId());
        } catch (RuntimeException e) {
            o.put("id", "");
        }
        return o;
    }

    /** What Java makes of a record. */
    static JSONObject fields(ByteBuffer raw) {
        JSONObject o = new JSONObject();
        o.put("raw", base64(raw));
        MessageExt m = MessageDecoder.decode(raw.duplicate(), true, false, false, false, true);
        if (m == null) {
            o.put("undecoded", true);
            return o;
        }
        o.put("topic", m.getTopic());
        o.put("queue", m.getQueueId());
        o.put("offset", m.getQueueOffset());
        o.put("phy", m.getCommitLogOffset());
        o.put("flag", m.getFlag());
        o.put("sysFlag", m.getSysFlag());
        o.put("born", m.getBornTimestamp());
        o.put("bornHost", String.valueOf(m.getBornHost()));
        o.put("stored", m.getStoreTimestamp());
        o.put("storeHost", String.valueOf(m.getStoreHost()));
        o.put("reconsume", m.getReconsumeTimes());
        o.put("prepared", m.getPreparedTransactionOffset());
        o.put("bodyCRC", m.getBodyCRC());
        o.put("body", base64(m.getBody() == null ? new byte[0] : m.getBody()));
        o.put("properties", m.getProperties());
        o.put("id", m.getMsgId());
        return o;
    }
}
