package rows.xalan;

import java.util.Random;

/** A generated document: the customers of a shop and what they ordered. */
final class Orders {
    private static final int CUSTOMERS = 60;
    private static final int ORDERS = 600;
    private static final int PRODUCTS = 40;

    private static final String[] COUNTRIES = {
        "Austria", "Brazil", "Canada", "Denmark", "Estonia", "France", "Ghana", "Hungary"
    };

    private static final String[] WORDS = {
        "urgent", "as", "agreed", "please", "call", "before", "delivery", "leave", "with", "neighbour"
    };

    private final Random random;
    private final StringBuilder out = new StringBuilder();

    Orders(long seed) {
        random = new Random(seed);
    }

    String text() {
        out.append("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<shop>\n");
        for (int id = 0; id < CUSTOMERS; id++) {
            out.append("<customer id=\"c").append(id).append("\" country=\"");
            out.append(COUNTRIES[random.nextInt(COUNTRIES.length)]).append("\"><name>Customer ");
            out.append(random.nextInt(100_000)).append(" &amp; Sons</name></customer>\n");
        }
        for (int id = 0; id < ORDERS; id++) {
            order(id);
        }
        out.append("</shop>\n");
        return out.toString();
    }

    private void order(int id) {
        out.append("<order id=\"o").append(id).append("\" customer=\"c");
        out.append(random.nextInt(CUSTOMERS)).append("\" day=\"").append(1 + random.nextInt(365));
        out.append("\">\n");
        int lines = 1 + random.nextInt(8);
        for (int i = 0; i < lines; i++) {
            out.append("  <line product=\"p").append(random.nextInt(PRODUCTS));
            out.append("\" quantity=\"").append(1 + random.nextInt(20));
            out.append("\" cents=\"").append(100 + random.nextInt(20_000)).append("\"/>\n");
        }
        if (random.nextInt(3) == 0) {
            out.append("  <note>");
            for (int i = 0; i < 8; i++) {
                out.append(WORDS[random.nextInt(WORDS.length)]).append(' ');
            }
            out.append("<em>&lt;").append(random.nextInt(100)).append("&gt;</em></note>\n");
        }
        out.append("</order>\n");
    }
}
