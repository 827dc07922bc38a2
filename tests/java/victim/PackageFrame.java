package victim;

/** Puts one frame of the implementing class's package on the stack and runs a task below it. */
public interface PackageFrame {
    void run(Runnable task);
}
