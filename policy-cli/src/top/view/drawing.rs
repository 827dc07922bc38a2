//! Drawing that all parts of the screen share.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use heapwarden_terminal::printable;

/// A name, shortened or padded to `columns`.
pub(super) fn padded(text: &str, columns: usize) -> String {
    let mut text = printable::fitted_name(text, columns).into_owned();
    let missing = columns.saturating_sub(printable::columns(&text));
    text.push_str(&" ".repeat(missing));
    text
}

pub(super) fn put(
    frame: &mut Frame<'_>,
    area: Rect,
    lines: impl IntoIterator<Item = Line<'static>>,
) {
    if area.width > 0 && area.height > 0 {
        let lines: Vec<Line<'static>> = lines.into_iter().collect();
        frame.render_widget(Paragraph::new(lines), area);
    }
}

/// The first `height` lines, and the rest.
pub(super) fn split_top(area: Rect, height: u16) -> (Rect, Rect) {
    let height = height.min(area.height);
    let rest = Rect {
        y: area.y + height,
        height: area.height - height,
        ..area
    };
    (Rect { height, ..area }, rest)
}

/// The lines before the last `height`, and those.
pub(super) fn split_bottom(area: Rect, height: u16) -> (Rect, Rect) {
    split_top(area, area.height.saturating_sub(height))
}
