package dev.heapwarden.demo.xml;

/** A parsed document. Immutable. */
public final class XmlDocument {
    private final XmlElement root;
    private final String[] names;

    XmlDocument(XmlElement root, String[] names) {
        this.root = root;
        this.names = names;
    }

    /**
     * The outermost element.
     *
     * @return never null
     */
    public XmlElement root() {
        return root;
    }

    /**
     * The number of different names of elements and attributes.
     *
     * @return at least 1
     */
    public int nameCount() {
        return names.length;
    }

    /**
     * A name of elements or attributes: every use of it in the document is this string.
     *
     * @param index from 0 to {@link #nameCount}, exclusive
     * @return the name
     */
    public String name(int index) {
        return names[index];
    }
}
