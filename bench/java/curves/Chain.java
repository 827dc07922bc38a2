package curves;

/** A chain of calls whose last one allocates; the implementations are generated. */
public interface Chain {
    /** An array of so many bytes, allocated at the depth that the class is named after. */
    Object run(int bytes);

    /** The generated chain of that depth. */
    static Chain deep(int depth) throws ReflectiveOperationException {
        String name = String.format("chain.Depth%03d_000000", depth);
        return (Chain) Class.forName(name).getDeclaredConstructor().newInstance();
    }
}
