package dev.heapwarden.demo.report;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.heapwarden.demo.xml.XmlException;
import dev.heapwarden.demo.xml.XmlParser;
import org.junit.jupiter.api.Test;
import org.openjdk.jol.info.GraphLayout;

class ArchiveTest {
    @Test
    void its_truth_is_the_size_of_its_graph() throws XmlException {
        Archive archive = new Archive(8);
        ReportWriter writer = new ReportWriter();
        assertEquals(graphBytes(archive), archive.ownBytes());
        for (int i = 0; i < 12; i++) {
            archive.keep(XmlParser.parse(writer.next()));
            assertEquals(graphBytes(archive), archive.ownBytes() + archive.documentBytes());
        }
        assertEquals(8, archive.entries());
        archive.clear();
        assertEquals(graphBytes(archive), archive.ownBytes());
        assertEquals(0, archive.documentBytes());
    }

    private static long graphBytes(Archive archive) {
        return GraphLayout.parseInstance(archive).totalSize();
    }
}
