package rows.fop;

import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import rows.Checksum;

/** Takes PDF and hashes it, without the lines that are never twice the same. */
final class StablePdf extends OutputStream {
    /** When it was made, and the identifier, which is random. */
    private static final byte[][] UNSTABLE = {
        "<xmp:MetadataDate>".getBytes(StandardCharsets.US_ASCII),
        "/ID [".getBytes(StandardCharsets.US_ASCII)
    };

    private final Checksum checksum = new Checksum();
    private final Line line = new Line();

    @Override
    public void write(int octet) {
        line.write(octet);
        if (octet == '\n') {
            line.end(checksum);
        }
    }

    @Override
    public void write(byte[] octets, int from, int length) {
        int begin = from;
        for (int i = from; i < from + length; i++) {
            if (octets[i] == '\n') {
                line.write(octets, begin, i + 1 - begin);
                line.end(checksum);
                begin = i + 1;
            }
        }
        line.write(octets, begin, from + length - begin);
    }

    /** The hash of all lines so far; the last one of PDF has no end. */
    long checksum() {
        line.end(checksum);
        return checksum.value();
    }

    /** The bytes of a line. */
    private static final class Line extends ByteArrayOutputStream {
        void end(Checksum checksum) {
            int at = 0;
            while (at < count && buf[at] == ' ') {
                at++;
            }
            boolean stable = true;
            for (byte[] start : UNSTABLE) {
                stable &= !startsWith(start, at);
            }
            if (stable) {
                checksum.write(buf, 0, count);
            }
            reset();
        }

        private boolean startsWith(byte[] start, int at) {
            for (int i = 0; i < start.length; i++) {
                if (at + i >= count || buf[at + i] != start[i]) {
                    return false;
                }
            }
            return true;
        }
    }
}
