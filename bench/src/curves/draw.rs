//! Pictures as SVG, by `plotters`. Text stays text: the viewer's own font shows it.

use std::fmt::Display;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::prelude::*;

use super::axis::Axis;
use super::chart::{Bar, Dot, Line, Panel, Picture};

const WIDTH: u32 = 1000;
const HEIGHT: u32 = 470;
/// Of the title and the note above the panels.
const HEAD: u32 = 62;
const FONT: &str = "sans-serif";
const TITLE_SIZE: u32 = 20;
const PANEL_SIZE: u32 = 16;
const TEXT_SIZE: u32 = 13;
const AXIS_ROOM: u32 = 48;
const Y_ROOM: u32 = 72;
/// Of a dot and of the ends of its interval.
const DOT_WIDTH: u32 = 8;
/// Part of the axis by which lines are moved aside, so that no interval hides another.
const ASIDE: f64 = 0.008;
/// Of people who see colours differently, too (M. Okabe, K. Ito, *Color Universal Design*, 2008).
const COLOURS: [RGBColor; 4] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
];
const GRID: RGBColor = RGBColor(225, 225, 225);
const MARK: RGBColor = RGBColor(110, 110, 110);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Plot<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Places, Places>>;

/// The picture as an SVG document.
///
/// # Errors
/// Where `plotters` cannot draw it.
pub(crate) fn svg(picture: &Picture) -> Result<String> {
    let mut text = String::new();
    draw(picture, &mut text)
        .map_err(|error| anyhow!("{} cannot be drawn: {error}", picture.name))?;
    Ok(text)
}

/// The text of an error that the drawing library reports.
struct Failed(String);

impl Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: std::error::Error + Send + Sync> From<DrawingAreaErrorKind<E>> for Failed {
    fn from(error: DrawingAreaErrorKind<E>) -> Failed {
        Failed(error.to_string())
    }
}

fn draw(picture: &Picture, text: &mut String) -> Result<(), Failed> {
    let root = SVGBackend::with_string(text, (WIDTH, HEIGHT)).into_drawing_area();
    root.fill(&WHITE)?;
    let (head, body) = root.split_vertically(HEAD);
    let title = (FONT, TITLE_SIZE).into_font().color(&BLACK);
    head.draw(&Text::new(picture.title.clone(), (16, 12), title))?;
    let note = (FONT, TEXT_SIZE).into_font().color(&MARK);
    head.draw(&Text::new(picture.note.clone(), (16, 40), note))?;
    let areas = body.split_evenly((1, picture.panels.len().max(1)));
    for (area, panel) in areas.iter().zip(&picture.panels) {
        draw_panel(area, panel)?;
    }
    root.present()?;
    Ok(())
}

/// An axis as `plotters` wants it: its places and ticks are ours.
struct Places {
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

impl Places {
    fn of(axis: &Axis) -> Places {
        Places {
            low: axis.range.0,
            high: axis.range.1,
            ticks: axis.ticks.iter().map(|(place, _)| *place).collect(),
        }
    }
}

impl Ranged for Places {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (first, last): (i32, i32)) -> i32 {
        let part = (place - self.low) / (self.high - self.low);
        first + (part * f64::from(last - first)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.low..self.high
    }
}

fn draw_panel(area: &Area<'_>, panel: &Panel) -> Result<(), Failed> {
    let mut plot = ChartBuilder::on(area)
        .caption(&panel.title, (FONT, PANEL_SIZE).into_font().color(&BLACK))
        .margin(10)
        .margin_right(24)
        .x_label_area_size(AXIS_ROOM)
        .y_label_area_size(Y_ROOM)
        .build_cartesian_2d(Places::of(&panel.x), Places::of(&panel.y))?;
    let labels = (FONT, TEXT_SIZE).into_font().color(&BLACK);
    plot.configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(BLACK)
        .x_labels(panel.x.ticks.len())
        .y_labels(panel.y.ticks.len())
        .x_label_formatter(&|place| panel.x.tick(*place))
        .y_label_formatter(&|place| panel.y.tick(*place))
        .x_desc(&panel.x.label)
        .y_desc(&panel.y.label)
        .label_style(labels.clone())
        .axis_desc_style((FONT, TEXT_SIZE + 1).into_font().color(&BLACK))
        .draw()?;
    if let Some(value) = panel.mark {
        let y = panel.y.scale.place(value);
        let (low, high) = panel.x.range;
        plot.draw_series([PathElement::new(vec![(low, y), (high, y)], MARK)])?;
    }
    for (number, line) in panel.lines.iter().enumerate() {
        let aside = number as f64 - (panel.lines.len() - 1) as f64 / 2.0;
        draw_line(
            &mut plot,
            panel,
            line,
            aside,
            COLOURS[number % COLOURS.len()],
        )?;
    }
    if panel.lines.len() > 1 {
        plot.configure_series_labels()
            .position(match panel.is_falling {
                true => SeriesLabelPosition::LowerLeft,
                false => SeriesLabelPosition::UpperLeft,
            })
            .background_style(WHITE.mix(0.85))
            .border_style(GRID)
            .label_font(labels)
            .draw()?;
    }
    Ok(())
}

fn draw_line(
    plot: &mut Plot<'_, '_>,
    panel: &Panel,
    line: &Line,
    aside: f64,
    colour: RGBColor,
) -> Result<(), Failed> {
    let width = panel.x.range.1 - panel.x.range.0;
    let at = |dot: &Dot| {
        let x = places_of(&panel.x, dot.x).map(|x| x + aside * ASIDE * width);
        (x, places_of(&panel.y, dot.y))
    };
    let points: Vec<_> = line.dots.iter().map(at).collect();
    if line.is_joined {
        let path = points.iter().map(|(x, y)| (x[0], y[0]));
        plot.draw_series(LineSeries::new(path, colour.stroke_width(2)))?;
    }
    let sideways = points.iter().filter(|(x, _)| x[1] < x[2]);
    plot.draw_series(sideways.map(|(x, y)| {
        ErrorBar::new_horizontal(y[0], x[1], x[0], x[2], colour.filled(), DOT_WIDTH)
    }))?;
    let upright = points
        .iter()
        .map(|(x, y)| ErrorBar::new_vertical(x[0], y[1], y[0], y[2], colour.filled(), DOT_WIDTH));
    plot.draw_series(upright)?
        .label(line.name.clone())
        .legend(move |(x, y)| Circle::new((x + 10, y), DOT_WIDTH / 2, colour.filled()));
    let font = (FONT, TEXT_SIZE).into_font().color(&colour);
    plot.draw_series(line.dots.iter().zip(&points).map(|(dot, (x, y))| {
        EmptyElement::at((x[0], y[0])) + Text::new(dot.label.clone(), (9, -16), font.clone())
    }))?;
    Ok(())
}

/// The places of a value and of the ends of its interval.
fn places_of(axis: &Axis, bar: Bar) -> [f64; 3] {
    bar.values().map(|value| axis.scale.place(value))
}

#[cfg(test)]
mod tests {
    use super::super::axis::Scale;
    use super::*;

    #[test]
    fn a_picture_says_what_it_shows_on_white() {
        let dot = |x: f64, y: f64| Dot {
            x: Bar {
                value: x,
                low: 0.5 * x,
                high: 2.0 * x,
            },
            y: Bar {
                value: y,
                low: y - 1.0,
                high: y + 1.0,
            },
            label: String::new(),
        };
        let line = |name: &str| Line {
            name: name.to_owned(),
            dots: vec![dot(1.0, 2.0), dot(10.0, 3.0)],
            is_joined: true,
        };
        let number = |value: f64| value.to_string();
        let scale = Scale::Log { floor: 1.0 };
        let panel = Panel {
            title: "wall".to_owned(),
            x: Axis::at("things & more", scale, &[1.0, 10.0], number),
            y: Axis::holding("cost (%)", Scale::Linear, &[1.0, 4.0], number),
            mark: Some(0.0),
            is_falling: false,
            lines: vec![line("one"), line("other")],
        };
        let picture = Picture {
            name: "curve-things".to_owned(),
            title: "Cost against things".to_owned(),
            note: "a note".to_owned(),
            panels: vec![panel.clone(), panel],
        };
        let svg = svg(&picture).unwrap();
        for text in [
            "Cost against things",
            "a note",
            "things &amp; more",
            "cost (%)",
            "other",
        ] {
            assert!(svg.contains(text), "no {text} in {svg}");
        }
        // A dot is drawn with each of its two intervals, at the same place; the legend has one a line.
        let mut dots: Vec<&str> = svg
            .lines()
            .filter(|line| line.contains("<circle"))
            .collect();
        assert_eq!(dots.len(), 2 * (2 * 2 * 2 + 2));
        dots.sort_unstable();
        dots.dedup();
        assert_eq!(dots.len(), 2 * (2 * 2 + 2), "{dots:?}");
        assert!(svg.contains("fill=\"#FFFFFF\""), "{svg}");
    }
}
