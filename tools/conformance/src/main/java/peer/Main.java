package peer;

import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONObject;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * The driver: requests come as lines of JSON on stdin, {"id":..,"op":..,...};
 * each is answered by one line on stdout, {"id":..,"ok":{...}} or
 * {"id":..,"error":"..","kind":".."}. Requests run side by side, so that one
 * process serves many stores; an op that answers in pieces sends
 * {"id":..,"part":{...}} before.
 */
public final class Main {
    private static final FileOutputStream OUT = new FileOutputStream(FileDescriptor.out);

    private Main() {
    }

    public static void main(String[] args) throws IOException {
        System.setOut(new PrintStream(new FileOutputStream(FileDescriptor.err), true)); // stdout is the protocol's
        ExecutorService pool = Executors.newCachedThreadPool(r -> {
            Thread t = new Thread(r, "op");
            t.setDaemon(true);
            return t;
        });
        Stores stores = new Stores();
        send(JSONObject.of("ready", JSONObject.of("java", System.getProperty("java.version"), "pid", ProcessHandle.current().pid())));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JSONObject request = JSON.parseObject(line);
            pool.execute(() -> answer(stores, request));
        }
        Runtime.getRuntime().halt(0); // the owner is gone: no shutdown hooks, no stores closed
    }

    private static void answer(Stores stores, JSONObject request) {
        long id = request.getLongValue("id");
        JSONObject reply = JSONObject.of("id", id);
        try {
            reply.put("ok", stores.run(request, part -> send(JSONObject.of("id", id, "part", part))));
        } catch (Throwable e) {
            Throwable cause = e;
            while (cause.getCause() != null && cause != cause.getCause()) {
                cause = cause.getCause();
            }
            reply.put("kind", cause.getClass().getSimpleName());
            reply.put("error", String.valueOf(cause.getMessage()));
        }
        send(reply);
    }

    /** Writes one line by one call: when the process is killed it is whole or not there. */
    static void send(JSONObject o) {
        byte[] line = (o.toString() + "\n").getBytes(StandardCharsets.UTF_8);
        synchronized (OUT) {
            try {
                OUT.write(line);
            } catch (IOException e) {
                Runtime.getRuntime().halt(3);
            }
        }
    }
}
