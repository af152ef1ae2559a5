package peer;

import com.alibaba.fastjson2.JSONArray;
import com.alibaba.fastjson2.JSONObject;
import java.io.File;
import java.util.HashSet;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.apache.rocketmq.common.BoundaryType;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.store.CommitLog;
import org.apache.rocketmq.store.DefaultMessageFilter;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.MessageFilter;
import org.apache.rocketmq.store.QueryMessageResult;
import org.apache.rocketmq.store.SelectMappedBufferResult;
import org.apache.rocketmq.store.config.FlushDiskType;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.queue.ConsumeQueueInterface;
import org.apache.rocketmq.store.queue.CqUnit;
import org.apache.rocketmq.store.queue.ReferredIterator;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/** The stores that are open, by number, and what can be done with them. */
final class Stores {
    /** The broker's filter by tag is a subscription; this is its hash alone. */
    private static final class TagFilter extends DefaultMessageFilter {
        private final long code;

        TagFilter(String tag) {
            super(null);
            this.code = tag.hashCode();
        }

        @Override
        public boolean isMatchedByConsumeQueue(Long tagsCode, org.apache.rocketmq.store.ConsumeQueueExt.CqExtUnit unit) {
            return tagsCode == null || tagsCode == code;
        }
    }

    private final Map<Long, DefaultMessageStore> stores = new ConcurrentHashMap<>();
    private final Map<Long, ConcurrentMap<String, TopicConfig>> topics = new ConcurrentHashMap<>();
    private final AtomicLong next = new AtomicLong();

    Object run(JSONObject q, Consumer<Object> part) throws Exception {
        String op = q.getString("op");
        switch (op) {
            case "open":
                return open(q);
            case "halt":
                Runtime.getRuntime().halt(137);
                return null;
            case "bench":
                return Bench.run(q);
            default:
        }
        DefaultMessageStore s = stores.get(q.getLongValue("store"));
        if (s == null) {
            throw new NoSuchElementException("no store " + q.get("store"));
        }
        switch (op) {
            case "load":
                return JSONObject.of("loaded", s.load());
            case "start":
                s.start();
                return null;
            case "put":
                return put(s, q.getJSONArray("messages"));
            case "putBatch":
                return Messages.result(s.putMessages(Messages.batch(q)));
            case "stream":
                return new Stream(s, q, part).run();
            case "wait":
                awaitDispatch(s, q.getLongValue("ms"));
                return null;
            case "get":
                return get(s, q);
            case "all":
                return all(s, q);
            case "read":
                return read(s, q.getLongValue("phy"));
            case "log":
                return log(s);
            case "queues":
                return queues(s);
            case "range":
                return JSONObject.of("min", s.getMinOffsetInQueue(q.getString("topic"), q.getIntValue("queue")),
                    "max", s.getMaxOffsetInQueue(q.getString("topic"), q.getIntValue("queue")));
            case "units":
                return units(s, q);
            case "offsetByTime":
                return JSONObject.of("offset", s.getOffsetInQueueByTime(q.getString("topic"), q.getIntValue("queue"),
                    q.getLongValue("time"), BoundaryType.getType(q.getString("boundary"))));
            case "query":
                return query(s, q);
            case "flush":
                return JSONObject.of("flushed", s.flush());
            case "truncate":
                return JSONObject.of("truncated", s.truncateFiles(q.getLongValue("phy")));
            case "deleteExpired":
                return deleteExpired(s, q.getIntValue("files"));
            case "deleteTopics":
                Set<String> names = new HashSet<>(q.getJSONArray("topics").toList(String.class));
                return JSONObject.of("deleted", s.deleteTopics(names));
            case "shutdown":
                s.shutdown();
                stores.remove(q.getLongValue("store"));
                return null;
            default:
                throw new UnsupportedOperationException(op);
        }
    }

    private Object open(JSONObject q) throws Exception {
        long id = next.incrementAndGet();
        ConcurrentMap<String, TopicConfig> table = new ConcurrentHashMap<>();
        JSONObject queueTypes = q.getJSONObject("queueTypes");
        if (queueTypes != null) {
            for (String topic : queueTypes.keySet()) {
                TopicConfig t = new TopicConfig(topic, 8, 8);
                t.getAttributes().put("queue.type", queueTypes.getString(topic));
                table.put(topic, t);
            }
        }
        topics.put(id, table);
        stores.put(id, make(q.getString("dir"), q.getJSONObject("config"), table));
        return JSONObject.of("store", id);
    }

    static DefaultMessageStore make(String dir, JSONObject config, ConcurrentMap<String, TopicConfig> table) throws Exception {
        MessageStoreConfig c = new MessageStoreConfig();
        c.setStorePathRootDir(dir);
        c.setStorePathCommitLog(dir + File.separator + "commitlog");
        c.setHaListenPort(0);
        c.setEnableCompaction(false);
        // The machine's disk may be as full as it likes, and gets must not stop early.
        c.setDiskMaxUsedSpaceRatio(95);
        c.setDiskSpaceWarningLevelRatio(90);
        c.setMaxTransferCountOnMessageInMemory(1 << 16);
        c.setMaxTransferCountOnMessageInDisk(1 << 16);
        c.setMaxTransferBytesOnMessageInMemory(1 << 26);
        c.setMaxTransferBytesOnMessageInDisk(1 << 26);
        if (config != null) {
            for (String name : config.keySet()) {
                set(c, name, config.get(name));
            }
        }
        BrokerConfig broker = new BrokerConfig();
        broker.setEnableControllerMode(false);
        return new DefaultMessageStore(c, new BrokerStatsManager("conformance", true),
            (topic, queue, offset, tags, time, bits, props) -> { }, broker, table);
    }

    private static void set(MessageStoreConfig c, String name, Object value) throws Exception {
        boolean optional = name.endsWith("?");
        String setter = "set" + (optional ? name.substring(0, name.length() - 1) : name);
        for (var m : MessageStoreConfig.class.getMethods()) {
            if (!m.getName().equalsIgnoreCase(setter) || m.getParameterCount() != 1) {
                continue;
            }
            Class<?> t = m.getParameterTypes()[0];
            if (t == FlushDiskType.class) {
                continue; // there is one that takes the name
            }
            Object v = String.valueOf(value);
            if (t == int.class) {
                v = ((Number) value).intValue();
            } else if (t == long.class) {
                v = ((Number) value).longValue();
            } else if (t == boolean.class) {
                v = value;
            }
            m.invoke(c, v);
            return;
        }
        if (!optional) {
            throw new NoSuchFieldException("no option " + name);
        }
    }

    private static Object put(DefaultMessageStore s, JSONArray messages) throws Exception {
        JSONArray results = new JSONArray();
        for (int i = 0; i < messages.size(); i++) {
            results.add(Messages.result(s.putMessage(Messages.message(messages.getJSONObject(i)))));
        }
        return JSONObject.of("results", results);
    }

    static void awaitDispatch(DefaultMessageStore s, long ms) throws Exception {
        long until = System.nanoTime() + (ms == 0 ? 30_000 : ms) * 1_000_000;
        CommitLog log = s.getCommitLog();
        while (s.dispatchBehindBytes() > 0 || log.getConfirmOffset() < log.getMappedFileQueue().getMaxWrotePosition()) {
            if (System.nanoTime() > until) {
                throw new IllegalStateException("dispatch stays behind: " + s.dispatchBehindBytes() + " bytes");
            }
            Thread.sleep(1);
        }
    }

    private static JSONObject get(DefaultMessageStore s, JSONObject q) {
        String tag = q.getString("tag");
        MessageFilter filter = tag == null ? null : new TagFilter(tag);
        int count = q.getIntValue("count");
        GetMessageResult r = s.getMessage("group", q.getString("topic"), q.getIntValue("queue"), q.getLongValue("offset"),
            count == 0 ? 32 : count, filter);
        JSONObject o = new JSONObject();
        if (r == null) {
            o.put("status", "null");
            return o;
        }
        o.put("status", String.valueOf(r.getStatus()));
        o.put("next", r.getNextBeginOffset());
        o.put("min", r.getMinOffset());
        o.put("max", r.getMaxOffset());
        JSONArray records = new JSONArray();
        for (SelectMappedBufferResult b : r.getMessageMapedList()) {
            records.add(Messages.fields(b.getByteBuffer()));
        }
        r.release();
        o.put("records", records);
        return o;
    }

    /** Reads a queue to its end by following next. */
    private static Object all(DefaultMessageStore s, JSONObject q) {
        JSONArray records = new JSONArray();
        JSONObject ask = new JSONObject(q);
        ask.put("count", 512);
        JSONObject last;
        for (int steps = 0; ; steps++) {
            last = get(s, ask);
            JSONArray some = last.getJSONArray("records");
            if (some != null) {
                records.addAll(some);
            }
            long at = ask.getLongValue("offset");
            long to = last.getLongValue("next");
            if (to <= at && steps > 0 || to >= last.getLongValue("max") || to == at) {
                break;
            }
            ask.put("offset", to);
        }
        last.put("records", records);
        return last;
    }

    private static Object read(DefaultMessageStore s, long phy) {
        SelectMappedBufferResult size = phy < s.getMinPhyOffset() || phy >= s.getMaxPhyOffset() ? null : s.selectOneMessageByOffset(phy);
        if (size == null) {
            return JSONObject.of("found", false);
        }
        JSONObject o = Messages.fields(size.getByteBuffer());
        size.release();
        o.put("found", true);
        return o;
    }

    private static Object log(DefaultMessageStore s) {
        JSONObject o = new JSONObject();
        o.put("min", s.getMinPhyOffset());
        o.put("max", s.getMaxPhyOffset());
        o.put("flushed", s.getCommitLog().getFlushedWhere());
        o.put("confirmed", s.getCommitLog().getConfirmOffset());
        o.put("behind", s.dispatchBehindBytes());
        o.put("flags", s.getRunningFlags().getFlagBits());
        return o;
    }

    private static Object queues(DefaultMessageStore s) {
        JSONArray list = new JSONArray();
        s.getConsumeQueueTable().forEach((topic, ids) -> ids.forEach((id, cq) ->
            list.add(JSONObject.of("topic", topic, "queue", id, "min", cq.getMinOffsetInQueue(), "max", cq.getMaxOffsetInQueue()))));
        return JSONObject.of("queues", list);
    }

    private static Object units(DefaultMessageStore s, JSONObject q) {
        JSONArray list = new JSONArray();
        ConsumeQueueInterface cq = s.findConsumeQueue(q.getString("topic"), q.getIntValue("queue"));
        for (long at = q.getLongValue("offset"); cq != null && at < cq.getMaxOffsetInQueue(); ) {
            ReferredIterator<CqUnit> it = cq.iterateFrom(at);
            if (it == null) {
                break;
            }
            long from = at;
            while (it.hasNext()) {
                CqUnit u = it.next();
                list.add(JSONObject.of("offset", u.getQueueOffset(), "phy", u.getPos(), "size", u.getSize(), "tags", u.getTagsCode()));
                at = u.getQueueOffset() + u.getBatchNum();
            }
            it.release();
            if (at == from) {
                break;
            }
        }
        return JSONObject.of("units", list);
    }

    private static Object query(DefaultMessageStore s, JSONObject q) {
        int count = q.getIntValue("count");
        QueryMessageResult r = s.queryMessage(q.getString("topic"), q.getString("key"), count == 0 ? 64 : count,
            q.getLongValue("from"), q.containsKey("to") ? q.getLongValue("to") : Long.MAX_VALUE);
        JSONArray records = new JSONArray();
        for (var b : r.getMessageBufferList()) {
            records.add(Messages.fields(b));
        }
        JSONObject o = JSONObject.of("indexPhy", r.getIndexLastUpdatePhyoffset(), "indexTime", r.getIndexLastUpdateTimestamp());
        r.release();
        o.put("records", records);
        return o;
    }

    /** Removes up to so many of the oldest log files, as retention would, and what queues and index hold of them. */
    private static Object deleteExpired(DefaultMessageStore s, int files) throws Exception {
        // A file that another thread of the store looks at just then stays: once more.
        int deleted = 0;
        for (int i = 0; i < 100 && deleted < files; i++) {
            deleted += s.getCommitLog().deleteExpiredFile(0, 0, 0, true, files - deleted);
            if (deleted < files) {
                Thread.sleep(20);
            }
        }
        long min = s.getMinPhyOffset();
        for (ConcurrentMap<Integer, ConsumeQueueInterface> ids : s.getConsumeQueueTable().values()) {
            for (ConsumeQueueInterface cq : ids.values()) {
                for (int i = 0; i < 100; i++) {
                    cq.deleteExpiredFile(min);
                    cq.correctMinOffset(min);
                    CqUnit first = cq.get(cq.getMinOffsetInQueue());
                    if (first == null || first.getPos() >= min) {
                        break;
                    }
                    Thread.sleep(20);
                }
            }
        }
        return JSONObject.of("deleted", deleted, "min", min);
    }
}
