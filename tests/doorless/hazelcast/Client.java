import com.hazelcast.client.HazelcastClient;
import com.hazelcast.client.config.ClientConfig;
import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.map.IMap;
import doorless.Loader;
import doorless.Target;

/** Entries of a map, by a client with the default timeouts: a call that nobody answers is one for ever. */
public final class Client implements Target {
    private final IMap<Integer, byte[]> held;

    private Client(HazelcastInstance client) {
        held = client.getMap("held");
    }

    public static void main(String[] args) throws Exception {
        ClientConfig config = new ClientConfig();
        config.setProperty("hazelcast.logging.type", "none");
        config.getNetworkConfig().addAddress("127.0.0.1:" + args[0]);
        Loader.serve(new Client(HazelcastClient.newHazelcastClient(config)));
    }

    @Override
    public void load(int number) {
        held.put(number, new byte[UNIT_BYTES]);
    }

    @Override
    public void delete(int number) {
        held.delete(number);
    }

    @Override
    public void read() {
        held.get(0);
    }

    @Override
    public void drop() {
        for (int number : held.keySet()) {
            held.delete(number);
        }
    }

    @Override
    public long count() {
        return held.size();
    }
}
