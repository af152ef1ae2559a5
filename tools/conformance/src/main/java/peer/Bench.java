package peer;

import com.alibaba.fastjson2.JSONArray;
import com.alibaba.fastjson2.JSONObject;
import java.util.Arrays;
import java.util.HashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.PutMessageResult;
import org.apache.rocketmq.store.SelectMappedBufferResult;

/**
 * A closed loop of appends, then all of it read back through its queues and
 * compared. It returns raw figures; the caller puts them into the form that all
 * load generators share.
 */
final class Bench {
    private Bench() {
    }

    /** Latencies of one thread, growing. */
    private static final class Times {
        long[] at = new long[1 << 16];
        int n;

        void add(long nanos) {
            if (n == at.length) {
                at = Arrays.copyOf(at, 2 * n);
            }
            at[n++] = nanos;
        }
    }

    static Object run(JSONObject q) throws Exception {
        int threads = q.getIntValue("threads");
        int size = q.getIntValue("size");
        int queues = q.getIntValue("queues");
        long warm = q.getLongValue("warmupMs") * 1_000_000;
        long length = q.getLongValue("ms") * 1_000_000;
        DefaultMessageStore s = Stores.make(q.getString("dir"), q.getJSONObject("config"), new ConcurrentHashMap<>());
        if (!s.load()) {
            throw new IllegalStateException("load");
        }
        s.start();

        Times[] times = new Times[threads];
        AtomicReference<String> failed = new AtomicReference<>();
        AtomicLong seq = new AtomicLong();
        long begin = System.nanoTime();
        long from = begin + warm;
        long to = from + length;
        LongAdder total = new LongAdder();
        Thread[] all = new Thread[threads];
        long[] last = new long[threads];
        for (int t = 0; t < threads; t++) {
            int me = t;
            times[t] = new Times();
            all[t] = new Thread(() -> {
                try {
                    while (failed.get() == null) {
                        long i = seq.getAndIncrement();
                        MessageExtBrokerInner m = message((int) (i % queues), i, size);
                        long start = System.nanoTime();
                        if (start >= to) {
                            return;
                        }
                        PutMessageResult r = s.putMessage(m);
                        long end = System.nanoTime();
                        if (!r.isOk() || !"PUT_OK".equals(r.getPutMessageStatus().name())) {
                            failed.compareAndSet(null, "put: " + r.getPutMessageStatus());
                            return;
                        }
                        total.increment();
                        if (start >= from) {
                            times[me].add(end - start);
                        }
                        last[me] = end;
                    }
                } catch (Exception e) {
                    failed.compareAndSet(null, e.toString());
                }
            }, "bench-" + t);
            all[t].start();
        }
        for (Thread t : all) {
            t.join();
        }
        if (failed.get() != null) {
            s.shutdown();
            throw new IllegalStateException(failed.get());
        }
        long ended = Arrays.stream(last).max().orElse(from);
        long behind = s.dispatchBehindBytes();
        long waited = System.nanoTime();
        Stores.awaitDispatch(s, 120_000);
        waited = System.nanoTime() - waited;

        JSONObject o = new JSONObject();
        o.put("seconds", (ended - from) / 1e9);
        o.put("lagBytes", behind);
        o.put("lagSeconds", waited / 1e9);
        latencies(o, times);
        o.put("acked", total.sum());
        verify(s, o, queues, size);
        s.shutdown();
        return o;
    }

    private static void latencies(JSONObject o, Times[] times) {
        int n = Arrays.stream(times).mapToInt(t -> t.n).sum();
        long[] all = new long[n];
        int at = 0;
        for (Times t : times) {
            System.arraycopy(t.at, 0, all, at, t.n);
            at += t.n;
        }
        Arrays.sort(all);
        o.put("count", n);
        if (n == 0) {
            return;
        }
        o.put("mean", Arrays.stream(all).average().orElse(0) / 1e3);
        o.put("min", all[0] / 1e3);
        o.put("max", all[n - 1] / 1e3);
        JSONArray curve = new JSONArray();
        for (double p : new double[] {50, 90, 99, 99.9, 99.99}) {
            curve.add(all[(int) Math.min(n - 1, Math.ceil(n * p / 100) - 1)] / 1e3);
        }
        o.put("quantiles", curve); // 50, 90, 99, 99.9, 99.99
    }

    /** The body tells its number; the rest follows from it. */
    private static void fill(byte[] body, long i) {
        for (int k = 0; k < 8 && k < body.length; k++) {
            body[k] = (byte) (i >> 8 * k);
        }
        for (int k = 8; k < body.length; k++) {
            body[k] = (byte) (i * 31 + k);
        }
    }

    private static MessageExtBrokerInner message(int queue, long i, int size) throws Exception {
        byte[] body = new byte[size];
        fill(body, i);
        MessageExtBrokerInner m = new MessageExtBrokerInner();
        m.setTopic("bench0");
        m.setQueueId(queue);
        m.setBody(body);
        m.setBornTimestamp(System.currentTimeMillis());
        m.setBornHost(Messages.host(null));
        m.setStoreHost(Messages.host(null));
        MessageAccessor.setProperties(m, new HashMap<>());
        m.setPropertiesString("");
        return m;
    }

    private static void verify(DefaultMessageStore s, JSONObject o, int queues, int size) throws Exception {
        long began = System.nanoTime();
        long right = 0;
        long wrong = 0;
        byte[] want = new byte[size];
        byte[] body = new byte[size];
        for (int queue = 0; queue < queues; queue++) {
            long end = s.getMaxOffsetInQueue("bench0", queue);
            for (long at = 0; at < end; ) {
                GetMessageResult r = s.getMessage("group", "bench0", queue, at, 1024, null);
                for (SelectMappedBufferResult b : r.getMessageMapedList()) {
                    var buffer = b.getByteBuffer();
                    int len = buffer.getInt(84); // both hosts are IPv4
                    boolean ok = len == size;
                    if (ok) {
                        buffer.position(88);
                        buffer.get(body);
                        long i = 0;
                        for (int k = 0; k < 8; k++) {
                            i |= (body[k] & 0xffL) << 8 * k;
                        }
                        fill(want, i);
                        ok = Arrays.equals(want, body) && i % queues == queue;
                    }
                    if (ok) {
                        right++;
                    } else {
                        wrong++;
                    }
                }
                r.release();
                if (r.getNextBeginOffset() <= at) {
                    wrong++;
                    break;
                }
                at = r.getNextBeginOffset();
            }
        }
        o.put("verified", right);
        o.put("wrong", wrong);
        o.put("verifySeconds", (System.nanoTime() - began) / 1e9);
    }
}
