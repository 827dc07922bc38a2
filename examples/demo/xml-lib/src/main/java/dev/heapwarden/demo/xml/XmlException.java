package dev.heapwarden.demo.xml;

/** A text is not the XML that this library reads. */
public final class XmlException extends Exception {
    private static final long serialVersionUID = 1L;

    XmlException(String message, int offset) {
        super(message + " at character " + offset);
    }
}
