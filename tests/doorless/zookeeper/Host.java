import org.apache.zookeeper.server.ZooKeeperServerMain;

/** A ZooKeeper server as its script starts it: it ends the JVM at an error that it takes for fatal. */
public final class Host {
    private Host() {}

    public static void main(String[] args) throws Exception {
        System.setProperty("zookeeper.admin.enableServer", "false");
        String[] arguments = {args[0], args[1]};
        new Thread(() -> ZooKeeperServerMain.main(arguments), "main of ZooKeeper").start();
    }
}
