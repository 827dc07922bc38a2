package rows.jbb;

import javax.xml.parsers.DocumentBuilder;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.Node;
import org.w3c.dom.Text;
import rows.Checksum;

/** Writes each transaction down as an XML document, and hashes its text. */
final class Journal {
    private final DocumentBuilder builder;
    private final Checksum checksum = new Checksum();
    private Document document;

    Journal() throws ParserConfigurationException {
        builder = DocumentBuilderFactory.newDefaultInstance().newDocumentBuilder();
    }

    /** Begins the document of a transaction. */
    Element begin(String transaction, long at) {
        document = builder.newDocument();
        Element root = document.createElement(transaction);
        root.setAttribute("at", Long.toString(at));
        document.appendChild(root);
        return root;
    }

    /** A new element below another one. */
    Element part(Element parent, String name) {
        Element element = document.createElement(name);
        parent.appendChild(element);
        return element;
    }

    /** A new element with a text. */
    void field(Element parent, String name, Object value) {
        part(parent, name).appendChild(document.createTextNode(value.toString()));
    }

    /** Ends the document of the transaction. */
    void end() {
        StringBuilder text = new StringBuilder();
        write(document.getDocumentElement(), text);
        checksum.add(text);
        document = null;
    }

    long checksum() {
        return checksum.value();
    }

    /** Values are letters, digits and points, none of which needs an escape. */
    private static void write(Element element, StringBuilder text) {
        text.append('<').append(element.getTagName());
        for (int i = 0; i < element.getAttributes().getLength(); i++) {
            Node attribute = element.getAttributes().item(i);
            text.append(' ').append(attribute.getNodeName());
            text.append("=\"").append(attribute.getNodeValue()).append('"');
        }
        text.append('>');
        for (Node child = element.getFirstChild(); child != null; child = child.getNextSibling()) {
            if (child instanceof Text) {
                text.append(child.getNodeValue());
            } else {
                write((Element) child, text);
            }
        }
        text.append("</").append(element.getTagName()).append('>');
    }
}
