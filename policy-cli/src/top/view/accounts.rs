//! The table of accounts.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::drawing::{padded, put};
use super::palette::Palette;
use crate::top::model::Model;
use heapwarden_terminal::printable;
use heapwarden_terminal::table::{Align, Column, layout};

/// Spaces between columns.
const GAP: usize = 2;
/// The mark of the selected row, and the space of the others.
const MARKS: [&str; 2] = ["> ", "  "];
/// Least columns of a name.
const MIN_NAME_COLUMNS: usize = 8;

/// The columns, the most important first: a narrow terminal shows only the first ones.
const PRIORITY: [Column; 18] = [
    Column::Account,
    Column::Live,
    Column::Percent,
    Column::State,
    Column::Limit,
    Column::Jvm,
    Column::Allocated,
    Column::Trend,
    Column::TurnedAway,
    Column::Refused,
    Column::WouldRefuse,
    Column::Deferred,
    Column::Waited,
    Column::Charged,
    Column::Objects,
    Column::Kind,
    Column::Threads,
    Column::OffHeap,
];

/// Draws head and rows, and returns how many rows fit.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, palette: Palette) -> usize {
    let room = usize::from(area.height).saturating_sub(1);
    let rows = model.rows();
    let cursor = model.cursor();
    let first = (cursor + 1).saturating_sub(room.max(1));
    let end = (first + room).min(rows.len());
    let shown = rows.get(first..end).unwrap_or_default();

    let (cells, mut widths) = layout(model.columns(), shown);
    let most = (usize::from(area.width) / 3).max(MIN_NAME_COLUMNS);
    for (column, width) in model.columns().iter().zip(&mut widths) {
        if matches!(column, Column::Account | Column::Jvm) {
            *width = (*width).min(most);
        }
        // The sorted column's mark.
        if *column == model.sort {
            *width = (*width).max(printable::columns(column.title()) + 1);
        }
    }
    let kept = fitting(model, &widths, usize::from(area.width));
    let titles: Vec<String> = model
        .columns()
        .iter()
        .map(|&column| title(column, model))
        .collect();
    let line = |texts: &[String]| {
        let mut line = String::new();
        for (at, column) in model.columns().iter().enumerate() {
            if kept.contains(column) {
                line.push_str(&aligned(&texts[at], widths[at], column.align()));
                line.push_str(&" ".repeat(GAP));
            }
        }
        line.truncate(line.trim_end().len());
        line
    };
    let head = Line::styled(format!("{}{}", MARKS[1], line(&titles)), palette.head());
    let mut lines = vec![head];
    for (number, (row, texts)) in shown.iter().zip(&cells).enumerate() {
        let is_selected = first + number == cursor;
        let style = palette.row(row.account.state, row.is_stale);
        let (mark, style) = match is_selected {
            true => (MARKS[0], style.patch(palette.selected())),
            false => (MARKS[1], style),
        };
        lines.push(Line::from(Span::styled(
            format!("{mark}{}", line(texts)),
            style,
        )));
    }
    if rows.is_empty() {
        let is_filtered = !model.filter.is_empty();
        let any = model.jvms.iter().any(|jvm| jvm.reading.is_some());
        lines.push(Line::raw(match (is_filtered, any) {
            (true, _) => "  no account contains the filter",
            (false, true) => "  no accounts yet",
            (false, false) => "",
        }));
    }
    put(frame, area, lines);
    room
}

/// The columns that fit, by priority; the sorted one is second only to the name.
fn fitting(model: &Model, widths: &[usize], room: usize) -> Vec<Column> {
    let mut wanted = PRIORITY.to_vec();
    wanted.retain(|&column| column != model.sort || column == Column::Account);
    if model.sort != Column::Account {
        wanted.insert(1, model.sort);
    }
    let mut used = MARKS[0].len();
    let mut kept = Vec::new();
    for column in wanted {
        let at = model.columns().iter().position(|&one| one == column);
        let Some(width) = at.map(|at| widths[at]) else {
            continue;
        };
        if !kept.is_empty() && used + width > room {
            break;
        }
        used += width + GAP;
        kept.push(column);
    }
    kept
}

/// The column's title, with an arrow where rows are sorted by it.
fn title(column: Column, model: &Model) -> String {
    if column != model.sort {
        return column.title().into();
    }
    let rises = (column.align() == Align::Left && column != Column::State) != model.is_reversed;
    format!("{}{}", column.title(), if rises { '▲' } else { '▼' })
}

fn aligned(text: &str, columns: usize, align: Align) -> String {
    match align {
        Align::Left => padded(text, columns),
        Align::Right => {
            let text = printable::fitted(text, columns);
            let missing = columns.saturating_sub(printable::columns(&text));
            format!("{}{text}", " ".repeat(missing))
        }
    }
}
