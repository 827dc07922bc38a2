import doorless.Loader;
import doorless.Target;
import heavy.HeavyTask;
import innocent.InnocentTask;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import kafka.Kafka;
import kafka.tools.StorageTool;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.connect.cli.ConnectStandalone;

/** A worker with two sinks, beside a broker. Who loads it is in the same JVM, and restarts a task that failed. */
public final class Host implements Target {
    private final String rest;
    private final HttpClient http = HttpClient.newHttpClient();
    private final KafkaProducer<String, String> producer;

    private Host(String broker, String port) {
        rest = "http://127.0.0.1:" + port + "/connectors/";
        producer =
                new KafkaProducer<>(
                        Map.of("bootstrap.servers", broker),
                        new StringSerializer(),
                        new StringSerializer());
    }

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[3]);
        String broker = "127.0.0.1:" + args[0];
        Path server =
                written(
                        folder.resolve("server.properties"),
                        """
                        process.roles=broker,controller
                        node.id=1
                        controller.quorum.voters=1@127.0.0.1:%2$s
                        listeners=PLAINTEXT://127.0.0.1:%1$s,CONTROLLER://127.0.0.1:%2$s
                        advertised.listeners=PLAINTEXT://127.0.0.1:%1$s
                        controller.listener.names=CONTROLLER
                        log.dirs=%3$s/data
                        log.cleaner.dedupe.buffer.size=4194304
                        offsets.topic.num.partitions=1
                        offsets.topic.replication.factor=1
                        group.initial.rebalance.delay.ms=0
                        """
                                .formatted(args[0], args[1], folder));
        String[] format = {
            "format", "--cluster-id", "aGVhcHdhcmRlbi10ZXN0cw", "--config", server.toString()
        };
        try (PrintStream nowhere = new PrintStream(OutputStream.nullOutputStream())) {
            StorageTool.execute(format, nowhere);
        }
        new Thread(() -> Kafka.main(new String[] {server.toString()}), "main of Kafka").start();
        Host host = new Host(broker, args[2]);
        // The topics.
        host.producer.send(new ProducerRecord<>("heavy", "first", "")).get(60, TimeUnit.SECONDS);
        host.producer.send(new ProducerRecord<>("innocent", "first", "")).get(60, TimeUnit.SECONDS);
        Path worker =
                written(
                        folder.resolve("worker.properties"),
                        """
                        bootstrap.servers=%1$s
                        listeners=http://127.0.0.1:%2$s
                        key.converter=org.apache.kafka.connect.storage.StringConverter
                        value.converter=org.apache.kafka.connect.storage.StringConverter
                        offset.storage.file.filename=%3$s/offsets
                        offset.flush.interval.ms=1000
                        plugin.discovery=only_scan
                        """
                                .formatted(broker, args[2], folder));
        String[] arguments = {
            worker.toString(),
            sink(folder, "heavy", HeavyTask.class).toString(),
            sink(folder, "innocent", InnocentTask.class).toString()
        };
        new Thread(() -> ConnectStandalone.main(arguments), "main of Connect").start();
        while (!HeavyTask.holds("first") || InnocentTask.seen() == 0) {
            Thread.sleep(50);
        }
        Loader.serve(host);
    }

    private static Path sink(Path folder, String name, Class<?> task) throws IOException {
        return written(
                folder.resolve(name + ".properties"),
                """
                name=%1$s
                topics=%1$s
                connector.class=sinks.Sink
                task=%2$s
                tasks.max=1
                consumer.override.auto.offset.reset=earliest
                """
                        .formatted(name, task.getName()));
    }

    private static Path written(Path file, String text) throws IOException {
        return Files.writeString(file, text, StandardCharsets.UTF_8);
    }

    private String ask(String method, String path) throws IOException, InterruptedException {
        HttpRequest request =
                HttpRequest.newBuilder(URI.create(rest + path))
                        .method(method, HttpRequest.BodyPublishers.noBody())
                        .build();
        return http.send(request, HttpResponse.BodyHandlers.ofString()).body();
    }

    private boolean failed(String name) throws IOException, InterruptedException {
        return ask("GET", name + "/status").contains("FAILED");
    }

    private void send(String topic, String key, String value) throws Exception {
        producer.send(new ProducerRecord<>(topic, key, value)).get();
    }

    @Override
    public void load(int number) throws Exception {
        String key = Integer.toString(number);
        restarted();
        send("heavy", key, "x".repeat(UNIT_BYTES));
        for (int waits = 0; !HeavyTask.holds(key); waits++) {
            if (waits % 20 == 19 && failed("heavy")) {
                throw new IllegalStateException("the task is FAILED");
            }
            Thread.sleep(5);
        }
    }

    private void restarted() throws Exception {
        if (failed("heavy")) {
            ask("POST", "heavy/restart?includeTasks=true&onlyFailed=true");
        }
    }

    @Override
    public void delete(int number) {
        HeavyTask.delete(Integer.toString(number));
    }

    @Override
    public void drop() throws Exception {
        HeavyTask.clear();
        restarted();
    }

    /** Without the first. */
    @Override
    public long count() {
        return HeavyTask.count() - 1;
    }

    /** The other connector works. */
    @Override
    public void read() throws Exception {
        long before = InnocentTask.seen();
        send("innocent", "read", "x");
        while (InnocentTask.seen() == before) {
            if (failed("innocent")) {
                throw new IllegalStateException("the innocent task is FAILED");
            }
            Thread.sleep(2);
        }
    }
}
