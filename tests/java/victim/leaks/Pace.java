package victim.leaks;

/** Turns a rate into whole objects; the rest of one call counts in the next. */
public final class Pace {
    private double due;

    /** How many objects of {@code bytes} each are due after so many seconds at a rate in bytes a second. */
    public int due(double bytesPerSecond, double seconds, int bytes) {
        due += bytesPerSecond * seconds / bytes;
        int whole = (int) due;
        due -= whole;
        return whole;
    }
}
