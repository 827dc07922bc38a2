package dev.heapwarden.demo.xml;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads a text into a tree.
 *
 * <p>Elements, attributes, text and the five predefined entities; no declarations, comments,
 * processing instructions, CDATA or namespaces: each of those is an error, as is nesting deeper
 * than {@value #DEPTH_MAXIMUM}. A parser reads one text and is not thread-safe.
 */
public final class XmlParser {
    private static final int DEPTH_MAXIMUM = 100;

    private final String source;
    private final Map<String, String> names = new LinkedHashMap<>();
    private int offset;

    private XmlParser(String source) {
        this.source = source;
    }

    /**
     * Parses a text.
     *
     * @param source the whole document
     * @return its tree
     * @throws XmlException where the text is not well-formed or uses more than this library reads
     */
    public static XmlDocument parse(String source) throws XmlException {
        XmlParser parser = new XmlParser(source);
        parser.skipSpace();
        XmlElement root = parser.element(1);
        parser.skipSpace();
        if (parser.offset != source.length()) {
            throw parser.error("something follows the outermost element");
        }
        return new XmlDocument(root, parser.names.values().toArray(String[]::new));
    }

    private XmlElement element(int depth) throws XmlException {
        if (depth > DEPTH_MAXIMUM) {
            throw error("elements are nested deeper than " + DEPTH_MAXIMUM);
        }
        expect('<');
        String name = name();
        String[] attributes = attributes();
        if (accept("/>")) {
            return new XmlElement(name, attributes, null, null);
        }
        expect('>');

        StringBuilder text = new StringBuilder();
        List<XmlElement> children = new ArrayList<>();
        while (!accept("</")) {
            if (peek() == '<') {
                children.add(element(depth + 1));
            } else {
                text.append(character('<'));
            }
        }
        String closing = name();
        if (!closing.equals(name)) {
            throw error("</" + closing + "> closes <" + name + ">");
        }
        skipSpace();
        expect('>');

        String stripped = text.toString().strip();
        return new XmlElement(
                name,
                attributes,
                stripped.isEmpty() ? null : stripped,
                children.isEmpty() ? null : children.toArray(XmlElement[]::new));
    }

    private String[] attributes() throws XmlException {
        List<String> pairs = new ArrayList<>();
        skipSpace();
        while (peek() != '>' && peek() != '/') {
            pairs.add(name());
            skipSpace();
            expect('=');
            skipSpace();
            char quote = peek();
            if (quote != '"' && quote != '\'') {
                throw error("an attribute's value is not quoted");
            }
            offset++;
            StringBuilder value = new StringBuilder();
            while (peek() != quote) {
                value.append(character(quote));
            }
            offset++;
            pairs.add(value.toString());
            skipSpace();
        }
        return pairs.isEmpty() ? null : pairs.toArray(String[]::new);
    }

    private String name() throws XmlException {
        int start = offset;
        while (offset < source.length() && isNameCharacter(source.charAt(offset))) {
            offset++;
        }
        if (start == offset) {
            throw error("a name is missing");
        }
        String found = source.substring(start, offset);
        String known = names.putIfAbsent(found, found);
        return known == null ? found : known;
    }

    private static boolean isNameCharacter(char c) {
        return Character.isLetterOrDigit(c) || c == '-' || c == '_' || c == '.';
    }

    private char character(char end) throws XmlException {
        char c = peek();
        if (c == '<' && end != '<') {
            throw error("a < stands in an attribute's value");
        }
        if (c != '&') {
            offset++;
            return c;
        }
        if (accept("&lt;")) {
            return '<';
        }
        if (accept("&gt;")) {
            return '>';
        }
        if (accept("&amp;")) {
            return '&';
        }
        if (accept("&quot;")) {
            return '"';
        }
        if (accept("&apos;")) {
            return '\'';
        }
        throw error("an unknown entity");
    }

    private void skipSpace() {
        while (offset < source.length() && Character.isWhitespace(source.charAt(offset))) {
            offset++;
        }
    }

    private char peek() throws XmlException {
        if (offset >= source.length()) {
            throw error("the text ends early");
        }
        return source.charAt(offset);
    }

    private void expect(char wanted) throws XmlException {
        if (peek() != wanted) {
            throw error("'" + wanted + "' expected");
        }
        offset++;
    }

    private boolean accept(String wanted) {
        boolean there = source.startsWith(wanted, offset);
        if (there) {
            offset += wanted.length();
        }
        return there;
    }

    private XmlException error(String message) {
        return new XmlException(message, offset);
    }
}
