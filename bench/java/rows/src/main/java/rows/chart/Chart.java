package rows.chart;

import java.awt.Graphics2D;
import java.awt.geom.Rectangle2D;
import java.awt.image.BufferedImage;
import java.awt.image.DataBufferInt;
import java.util.Random;
import org.jfree.chart.JFreeChart;
import org.jfree.chart.plot.Plot;
import rows.Checksum;
import rows.Row;
import rows.Settings;

/**
 * JFreeChart: draws generated charts of many kinds into an image, without a screen. They have no text,
 * since fonts differ by machine, and no soft edges, a few pixels of which differ by JDK; what is left of
 * the picture must be equal.
 */
public final class Chart implements Row {
    private static final int WIDTH = 1_000;
    private static final int HEIGHT = 700;

    /** How often each kind is drawn in one iteration, on other data each time. */
    private static final int ROUNDS = 16;

    private static final long EXPECTED = 0xef1eac686e474352L;

    private final BufferedImage image =
            new BufferedImage(WIDTH, HEIGHT, BufferedImage.TYPE_INT_RGB);

    /** Charts of the last iteration. */
    private int drawn;

    public Chart(Settings settings) {}

    @Override
    public int iterations() {
        return 8;
    }

    @Override
    public long operations() {
        return drawn;
    }

    @Override
    public long expected() {
        return EXPECTED;
    }

    @Override
    public long iterate() {
        drawn = 0;
        Checksum checksum = new Checksum();
        for (int seed = 1; seed <= ROUNDS; seed++) {
            for (Plot plot : new Plots(new Random(seed)).all()) {
                draw(plot);
                drawn++;
                for (int pixel : ((DataBufferInt) image.getRaster().getDataBuffer()).getData()) {
                    checksum.add(pixel);
                }
            }
        }
        return checksum.value();
    }

    private void draw(Plot plot) {
        JFreeChart chart = new JFreeChart(null, null, plot, false);
        chart.setAntiAlias(false);
        Graphics2D graphics = image.createGraphics();
        try {
            chart.draw(graphics, new Rectangle2D.Double(0, 0, WIDTH, HEIGHT));
        } finally {
            graphics.dispose();
        }
    }
}
