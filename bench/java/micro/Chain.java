package micro;

/** A chain of calls whose last one allocates; the implementations are generated. */
public interface Chain {
    /** An array of so many bytes, allocated at the depth that the class is named after. */
    Object run(int bytes);
}
