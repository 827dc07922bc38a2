//! The window that explains the keys.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};

const TEXT: [&str; 20] = [
    "Up Down PgUp PgDn Home End, or j k g G: move",
    "< > or Left Right, s: sort by another column",
    "r: reverse the order",
    "/: show only rows that contain a text (name, kind, state, JVM)",
    "Enter: classes and principals of the account",
    "  Tab: switch between them   a: all classes",
    "  Enter: ages, sizes and leak suspicion of the class (! is a suspect)",
    "  Up Down: to its neighbours",
    "Esc: back, or clear the filter",
    "p or space: pause the display; polling goes on",
    "q or Ctrl-C: quit",
    "",
    "LIVE survived the collection named above; ERROR is its standard error.",
    "< 0.2 MiB: no sample of the account is live, so it holds less than that",
    "  (95 % sure).",
    "CHARGED includes garbage not yet collected. % is of the limit.",
    "TREND is the growth of LIVE over the latest 30 readings.",
    "All of these include the scopes of a service.",
    "AWAY: requests and calls turned away while the account was over its limit.",
    "stale: the JVM does not answer; its numbers are old.",
];

/// Draws over everything.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect) {
    let widest = TEXT.iter().map(|line| line.len()).max().unwrap_or(0);
    let width = u16::try_from(widest + 4)
        .unwrap_or(area.width)
        .min(area.width);
    let height = u16::try_from(TEXT.len() + 2)
        .unwrap_or(area.height)
        .min(area.height);
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    let lines: Vec<Line<'_>> = TEXT.iter().map(|line| Line::raw(*line)).collect();
    let block = Block::bordered().title(" help: any key closes it ");
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(lines).block(block), place);
}
