import doorless.Loader;
import doorless.Target;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/** Nodes below one. */
public final class Client implements Target {
    private static final String PARENT = "/held";

    private final ZooKeeper keeper;

    private Client(String port) throws Exception {
        keeper = new ZooKeeper("127.0.0.1:" + port, 30_000, event -> {});
    }

    public static void main(String[] args) throws Exception {
        Client client = new Client(args[0]);
        client.parent();
        Loader.serve(client);
    }

    /** The server may still be starting. */
    private void parent() throws Exception {
        for (int attempt = 0; ; attempt++) {
            try {
                create(PARENT, 0);
                return;
            } catch (KeeperException.NodeExistsException present) {
                return;
            } catch (KeeperException.ConnectionLossException notYet) {
                if (attempt == 100) {
                    throw notYet;
                }
                Thread.sleep(200);
            }
        }
    }

    private void create(String path, int bytes) throws Exception {
        keeper.create(path, new byte[bytes], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    }

    @Override
    public void load(int number) throws Exception {
        create(PARENT + "/" + number, UNIT_BYTES);
    }

    @Override
    public void delete(int number) throws Exception {
        keeper.delete(PARENT + "/" + number, -1);
    }

    @Override
    public void read() throws Exception {
        keeper.getChildren(PARENT, false);
    }

    @Override
    public void drop() throws Exception {
        for (String child : keeper.getChildren(PARENT, false)) {
            try {
                keeper.delete(PARENT + "/" + child, -1);
            } catch (KeeperException.NoNodeException gone) {
                System.out.println(child + " was gone already");
            }
        }
    }

    @Override
    public long count() throws Exception {
        long whole = 0;
        for (String child : keeper.getChildren(PARENT, false)) {
            if (keeper.getData(PARENT + "/" + child, false, null).length == UNIT_BYTES) {
                whole++;
            }
        }
        return whole;
    }
}
