import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import kafka.Kafka;
import kafka.tools.StorageTool;

/** A broker and controller in one (KRaft), as its script starts it. */
public final class Host {
    private Host() {}

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[2]);
        Path properties = folder.resolve("server.properties");
        Files.writeString(
                properties,
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
                num.partitions=8
                group.initial.rebalance.delay.ms=0
                """
                        .formatted(args[0], args[1], folder),
                StandardCharsets.UTF_8);
        String[] format = {
            "format", "--ignore-formatted", "--cluster-id", "aGVhcHdhcmRlbi10ZXN0cw", "--config", properties.toString()
        };
        try (PrintStream nowhere = new PrintStream(OutputStream.nullOutputStream())) {
            StorageTool.execute(format, nowhere);
        }
        String[] arguments = {properties.toString()};
        new Thread(() -> Kafka.main(arguments), "main of Kafka").start();
    }
}
