package rows.chart;

import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.Random;
import org.jfree.chart.axis.CategoryAxis;
import org.jfree.chart.axis.NumberAxis;
import org.jfree.chart.axis.NumberTickUnit;
import org.jfree.chart.axis.ValueAxis;
import org.jfree.chart.plot.CategoryPlot;
import org.jfree.chart.plot.PiePlot;
import org.jfree.chart.plot.Plot;
import org.jfree.chart.plot.XYPlot;
import org.jfree.chart.renderer.category.BarRenderer;
import org.jfree.chart.renderer.category.BoxAndWhiskerRenderer;
import org.jfree.chart.renderer.category.CategoryItemRenderer;
import org.jfree.chart.renderer.category.StackedAreaRenderer;
import org.jfree.chart.renderer.xy.CandlestickRenderer;
import org.jfree.chart.renderer.xy.XYAreaRenderer;
import org.jfree.chart.renderer.xy.XYBarRenderer;
import org.jfree.chart.renderer.xy.XYItemRenderer;
import org.jfree.chart.renderer.xy.XYLineAndShapeRenderer;
import org.jfree.chart.renderer.xy.XYSplineRenderer;
import org.jfree.data.category.CategoryDataset;
import org.jfree.data.category.DefaultCategoryDataset;
import org.jfree.data.general.DefaultPieDataset;
import org.jfree.data.statistics.DefaultBoxAndWhiskerCategoryDataset;
import org.jfree.data.statistics.HistogramDataset;
import org.jfree.data.xy.DefaultHighLowDataset;
import org.jfree.data.xy.XYDataset;
import org.jfree.data.xy.XYSeries;
import org.jfree.data.xy.XYSeriesCollection;

/** Plots of generated data, one of each kind. */
final class Plots {
    private static final int SERIES = 4;
    private static final int POINTS = 4_000;
    private static final int SPLINE_POINTS = 200;
    private static final int DOTS = 2_000;
    private static final int CATEGORIES = 60;
    private static final int SLICES = 24;
    private static final int DAYS = 250;
    private static final int OBSERVATIONS = 20_000;
    private static final int BOXES = 12;
    private static final int BOX_VALUES = 500;

    private final Random random;

    Plots(Random random) {
        this.random = random;
    }

    List<Plot> all() {
        return List.of(
                xy(walks(POINTS), new XYLineAndShapeRenderer(true, false)),
                xy(walks(SPLINE_POINTS), new XYSplineRenderer()),
                xy(cloud(), new XYLineAndShapeRenderer(false, true)),
                xy(walks(POINTS), new XYAreaRenderer()),
                xy(histogram(), new XYBarRenderer()),
                xy(prices(), candlesticks()),
                category(table(), new BarRenderer()),
                category(table(), new StackedAreaRenderer()),
                category(boxes(), new BoxAndWhiskerRenderer()),
                pie());
    }

    private static Plot xy(XYDataset data, XYItemRenderer renderer) {
        return new XYPlot(data, axis(), axis(), renderer);
    }

    private static Plot category(CategoryDataset data, CategoryItemRenderer renderer) {
        CategoryAxis names = new CategoryAxis();
        names.setTickLabelsVisible(false);
        return new CategoryPlot(data, names, axis(), renderer);
    }

    private Plot pie() {
        DefaultPieDataset<String> data = new DefaultPieDataset<>();
        for (int i = 0; i < SLICES; i++) {
            data.setValue("slice " + i, 1 + random.nextInt(100));
        }
        PiePlot<String> plot = new PiePlot<>(data);
        plot.setLabelGenerator(null);
        return plot;
    }

    /** An axis without labels, whose ticks do not depend on how high a font is. */
    private static ValueAxis axis() {
        NumberAxis axis = new NumberAxis();
        axis.setTickLabelsVisible(false);
        axis.setAutoTickUnitSelection(false);
        axis.setAutoRangeIncludesZero(false);
        axis.setTickUnit(new NumberTickUnit(100));
        return axis;
    }

    private static XYItemRenderer candlesticks() {
        CandlestickRenderer renderer = new CandlestickRenderer();
        renderer.setDrawVolume(false);
        return renderer;
    }

    private XYDataset walks(int points) {
        XYSeriesCollection data = new XYSeriesCollection();
        for (int i = 0; i < SERIES; i++) {
            XYSeries series = new XYSeries("series " + i);
            double y = 0;
            for (int x = 0; x < points; x++) {
                y += random.nextInt(21) - 10;
                series.add(x, y);
            }
            data.addSeries(series);
        }
        return data;
    }

    private XYDataset cloud() {
        XYSeriesCollection data = new XYSeriesCollection();
        for (int i = 0; i < SERIES; i++) {
            XYSeries series = new XYSeries("series " + i);
            for (int dot = 0; dot < DOTS; dot++) {
                series.add(random.nextInt(1_000), random.nextInt(1_000));
            }
            data.addSeries(series);
        }
        return data;
    }

    private XYDataset histogram() {
        double[] values = new double[OBSERVATIONS];
        for (int i = 0; i < values.length; i++) {
            values[i] = random.nextInt(500) + random.nextInt(500);
        }
        HistogramDataset data = new HistogramDataset();
        data.addSeries("observations", values, 80);
        return data;
    }

    private XYDataset prices() {
        Date[] days = new Date[DAYS];
        double[] high = new double[DAYS];
        double[] low = new double[DAYS];
        double[] open = new double[DAYS];
        double[] close = new double[DAYS];
        double[] volume = new double[DAYS];
        double price = 1_000;
        for (int day = 0; day < DAYS; day++) {
            days[day] = new Date(10L * day);
            open[day] = price;
            price += random.nextInt(41) - 20;
            close[day] = price;
            high[day] = Math.max(open[day], close[day]) + random.nextInt(10);
            low[day] = Math.min(open[day], close[day]) - random.nextInt(10);
        }
        return new DefaultHighLowDataset("prices", days, high, low, open, close, volume);
    }

    private CategoryDataset table() {
        DefaultCategoryDataset data = new DefaultCategoryDataset();
        for (int series = 0; series < SERIES; series++) {
            for (int category = 0; category < CATEGORIES; category++) {
                data.addValue(1 + random.nextInt(200), "series " + series, "category " + category);
            }
        }
        return data;
    }

    private CategoryDataset boxes() {
        DefaultBoxAndWhiskerCategoryDataset data = new DefaultBoxAndWhiskerCategoryDataset();
        for (int series = 0; series < SERIES; series++) {
            for (int category = 0; category < BOXES; category++) {
                List<Integer> values = new ArrayList<>();
                for (int i = 0; i < BOX_VALUES; i++) {
                    values.add(random.nextInt(300) + random.nextInt(300));
                }
                data.add(values, "series " + series, "category " + category);
            }
        }
        return data;
    }
}
