package peer;

import com.alibaba.fastjson2.JSONObject;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.PutMessageResult;

/**
 * Appends from several threads, one queue each, and says what was acknowledged,
 * until a number is reached or the process is killed. Bodies are
 * "run queue i " and filling, as the test expects them.
 */
final class Stream {
    private final DefaultMessageStore store;
    private final Consumer<Object> part;
    private final String topic;
    private final int run;
    private final int queues;
    private final long count;
    private final AtomicReference<String> failed = new AtomicReference<>();

    Stream(DefaultMessageStore store, JSONObject q, Consumer<Object> part) {
        this.store = store;
        this.part = part;
        this.topic = q.getString("topic");
        this.run = q.getIntValue("run");
        this.queues = q.getIntValue("queues");
        this.count = q.containsKey("count") ? q.getLongValue("count") : Long.MAX_VALUE;
    }

    static byte[] body(int run, int queue, long i) {
        StringBuilder b = new StringBuilder().append(run).append(' ').append(queue).append(' ').append(i).append(' ');
        long n = (run * 31L + queue * 17L + i * 7L) % 1500;
        while (b.length() < n) {
            b.append((char) ('a' + (b.length() + i) % 26));
        }
        return b.toString().getBytes(StandardCharsets.US_ASCII);
    }

    Object run() throws InterruptedException {
        Thread[] threads = new Thread[queues];
        for (int q = 0; q < queues; q++) {
            int queue = q;
            threads[q] = new Thread(() -> one(queue), "stream-" + q);
            threads[q].start();
        }
        for (Thread t : threads) {
            t.join();
        }
        if (failed.get() != null) {
            throw new IllegalStateException(failed.get());
        }
        return null;
    }

    private void one(int queue) {
        try {
            for (long i = 0; i < count && failed.get() == null; i++) {
                JSONObject o = JSONObject.of("topic", topic, "queue", queue, "born", 1_700_000_000_000L,
                    "body", Messages.base64(body(run, queue, i)));
                PutMessageResult r = store.putMessage(Messages.message(o));
                if (!r.isOk()) {
                    failed.compareAndSet(null, "put " + queue + "/" + i + ": " + r.getPutMessageStatus());
                    return;
                }
                part.accept(JSONObject.of("run", run, "queue", queue, "i", i,
                    "offset", r.getAppendMessageResult().getLogicsOffset(), "phy", r.getAppendMessageResult().getWroteOffset()));
            }
        } catch (Exception e) {
            failed.compareAndSet(null, e.toString());
        }
    }
}
