package rows;

/** The user asked for what there is not; the message is one sentence for them. */
public final class Unsuitable extends Exception {
    private static final long serialVersionUID = 1;

    public Unsuitable(String message) {
        super(message);
    }
}
