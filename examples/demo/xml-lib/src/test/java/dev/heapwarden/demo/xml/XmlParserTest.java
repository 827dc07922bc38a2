package dev.heapwarden.demo.xml;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class XmlParserTest {
    @Test
    void a_document_becomes_a_tree() throws XmlException {
        XmlDocument document =
                XmlParser.parse("<a x='1' y=\"&quot;2&quot;\"><b> t &amp; u </b><b/><c z='3'></c></a>");
        XmlElement root = document.root();
        assertEquals("a", root.name());
        assertEquals(2, root.attributeCount());
        assertEquals("1", root.attribute("x"));
        assertEquals("\"2\"", root.attribute("y"));
        assertNull(root.attribute("z"));
        assertNull(root.text());
        assertEquals(3, root.childCount());
        assertEquals("t & u", root.child(0).text());
        assertEquals(0, root.child(1).childCount());
        assertEquals("3", root.child(2).attributeValue(0));
    }

    @Test
    void equal_names_are_one_string() throws XmlException {
        XmlDocument document = XmlParser.parse("<a><b/><b/></a>");
        assertEquals(2, document.nameCount());
        assertEquals("a", document.name(0));
        assertSame(document.root().child(0).name(), document.root().child(1).name());
        assertSame(document.name(1), document.root().child(0).name());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "", "text", "<a>", "<a></b>", "<a/><a/>", "<a x=1/>", "<a x='<'/>", "<a>&uuml;</a>",
                "<!-- no --><a/>", "<a x='1/>", "<a", "<a x"
            })
    void what_is_not_well_formed_is_an_error(String source) {
        assertThrows(XmlException.class, () -> XmlParser.parse(source));
    }

    @Test
    void nesting_is_bounded() {
        assertThrows(XmlException.class, () -> XmlParser.parse("<a>".repeat(100_000)));
    }
}
