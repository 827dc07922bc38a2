package dev.heapwarden.agent;

/** The agent that defined these classes. */
final class NativeAgent implements Agent {
    static final Agent AGENT = new NativeAgent();

    private NativeAgent() {}

    @Override
    public int open(Object token, String name, ClassLoader loader) {
        return Natives.open(token, name, loader);
    }

    @Override
    public boolean idle(int purse) {
        return Natives.idle(purse);
    }

    @Override
    public void use(boolean inherited) {
        Natives.use(inherited);
    }

    @Override
    public void misuse(int kind) {
        Natives.misuse(kind);
    }

    @Override
    public String current(int purse) {
        return Natives.current(purse);
    }

    @Override
    public void listen(boolean any) {
        Natives.listen(any);
    }
}
