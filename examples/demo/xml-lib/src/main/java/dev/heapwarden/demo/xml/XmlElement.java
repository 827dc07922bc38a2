package dev.heapwarden.demo.xml;

/** An element of a parsed document: a name, attributes, text and child elements. Immutable. */
public final class XmlElement {
    private static final XmlElement[] CHILDLESS = {};

    private final String name;
    private final String[] attributes;
    private final String text;
    private final XmlElement[] children;

    XmlElement(String name, String[] attributes, String text, XmlElement[] children) {
        this.name = name;
        this.attributes = attributes;
        this.text = text;
        this.children = children;
    }

    /**
     * The element's name.
     *
     * @return one string for all elements of that name in a document
     */
    public String name() {
        return name;
    }

    /**
     * An attribute.
     *
     * @param wanted the attribute's name
     * @return its value, or null where the element has none of that name
     */
    public String attribute(String wanted) {
        for (int i = 0; attributes != null && i < attributes.length; i += 2) {
            if (attributes[i].equals(wanted)) {
                return attributes[i + 1];
            }
        }
        return null;
    }

    /**
     * The number of attributes.
     *
     * @return 0 where there are none
     */
    public int attributeCount() {
        return attributes == null ? 0 : attributes.length / 2;
    }

    /**
     * An attribute's value by position.
     *
     * @param index from 0 to {@link #attributeCount}, exclusive
     * @return its value
     */
    public String attributeValue(int index) {
        return attributes[2 * index + 1];
    }

    /**
     * The text directly inside this element, white space at its ends removed.
     *
     * @return null where there is none
     */
    public String text() {
        return text;
    }

    /**
     * The number of child elements.
     *
     * @return 0 where there are none
     */
    public int childCount() {
        return children == null ? 0 : children.length;
    }

    /**
     * A child element by position.
     *
     * @param index from 0 to {@link #childCount}, exclusive
     * @return the child
     */
    public XmlElement child(int index) {
        return (children == null ? CHILDLESS : children)[index];
    }
}
