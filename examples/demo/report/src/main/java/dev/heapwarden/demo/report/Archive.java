package dev.heapwarden.demo.report;

import dev.heapwarden.demo.holdings.ObjectSizes;
import dev.heapwarden.demo.xml.XmlDocument;
import dev.heapwarden.demo.xml.XmlElement;
import java.util.Arrays;

/** The latest parsed documents, a fixed number of them. Thread-safe: one lock. */
final class Archive {
    private final XmlDocument[] documents;
    private int next;

    Archive(int capacity) {
        documents = new XmlDocument[capacity];
    }

    /** Keeps a document in place of the oldest. */
    synchronized void keep(XmlDocument document) {
        documents[next] = document;
        next = (next + 1) % documents.length;
    }

    /** Lets go of every document. */
    synchronized void clear() {
        Arrays.fill(documents, null);
    }

    synchronized int entries() {
        int count = 0;
        for (XmlDocument document : documents) {
            count += document == null ? 0 : 1;
        }
        return count;
    }

    /** The heap bytes of the table and this object: what this application's own code allocated. */
    synchronized long ownBytes() {
        ObjectSizes sizes = ObjectSizes.HERE;
        return sizes.instance(1, 0, 1, 0) + sizes.referenceArray(documents.length);
    }

    /** The heap bytes of the documents: what the library allocated. */
    synchronized long documentBytes() {
        long bytes = 0;
        for (XmlDocument document : documents) {
            bytes += document == null ? 0 : bytes(document);
        }
        return bytes;
    }

    private static long bytes(XmlDocument document) {
        ObjectSizes sizes = ObjectSizes.HERE;
        long bytes = sizes.instance(2, 0, 0, 0) + sizes.referenceArray(document.nameCount());
        for (int i = 0; i < document.nameCount(); i++) {
            bytes += sizes.string(document.name(i));
        }
        return bytes + bytes(document.root());
    }

    /** An element and what is below it, without the names: those belong to the document. */
    private static long bytes(XmlElement element) {
        ObjectSizes sizes = ObjectSizes.HERE;
        long bytes = sizes.instance(4, 0, 0, 0);
        if (element.attributeCount() > 0) {
            bytes += sizes.referenceArray(2 * element.attributeCount());
            for (int i = 0; i < element.attributeCount(); i++) {
                bytes += sizes.string(element.attributeValue(i));
            }
        }
        if (element.text() != null) {
            bytes += sizes.string(element.text());
        }
        if (element.childCount() > 0) {
            bytes += sizes.referenceArray(element.childCount());
            for (int i = 0; i < element.childCount(); i++) {
                bytes += bytes(element.child(i));
            }
        }
        return bytes;
    }
}
