import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.cassandra.service.CassandraDaemon;

/** One node, whose rows stay in memory until they are truncated: nothing is flushed before. */
public final class Host {
    private Host() {}

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[2]);
        Path settings = folder.resolve("cassandra.yaml");
        Files.writeString(
                settings,
                """
                cluster_name: loaded
                num_tokens: 1
                partitioner: org.apache.cassandra.dht.Murmur3Partitioner
                endpoint_snitch: SimpleSnitch
                listen_address: 127.0.0.1
                rpc_address: 127.0.0.1
                native_transport_port: %1$s
                storage_port: %2$s
                seed_provider:
                    - class_name: org.apache.cassandra.locator.SimpleSeedProvider
                      parameters:
                          - seeds: "127.0.0.1:%2$s"
                data_file_directories:
                    - %3$s/data
                commitlog_directory: %3$s/commitlog
                hints_directory: %3$s/hints
                saved_caches_directory: %3$s/caches
                commitlog_sync: batch
                commitlog_segment_size: 8MiB
                memtable_allocation_type: heap_buffers
                memtable_heap_space: 512MiB
                memtable_offheap_space: 64MiB
                key_cache_size: 1MiB
                counter_cache_size: 1MiB
                prepared_statements_cache_size: 1MiB
                auto_snapshot: false
                """
                        .formatted(args[0], args[1], folder),
                StandardCharsets.UTF_8);
        Quiet.logging(folder);
        System.setProperty("cassandra.config", settings.toUri().toString());
        System.setProperty("cassandra.storagedir", folder.toString());
        System.setProperty("cassandra-foreground", "yes");
        // Nobody else is waited for.
        System.setProperty("cassandra.skip_wait_for_gossip_to_settle", "0");
        System.setProperty("cassandra.ring_delay_ms", "100");
        new CassandraDaemon(true).activate();
    }
}
