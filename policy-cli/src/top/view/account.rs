//! One account: its numbers, what it holds and on whose behalf.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::class::suspect;
use super::drawing::{padded, put, split_top};
use super::palette::Palette;
use crate::top::model::Part;
use heapwarden_client::live::{Account, Door, Evidence, Leaks, wait_reason};
use heapwarden_terminal::printable;
use heapwarden_terminal::table::{Column, Row, amount};

/// From this width on, both lists are side by side.
const WIDE: u16 = 100;
/// Columns of an amount.
const AMOUNT_COLUMNS: usize = 10;
/// The mark of a class that is suspected to leak.
const SUSPECT: &str = " !";
/// Widest name in the first line.
const MAX_NAME_COLUMNS: usize = 60;

/// Draws the account, and returns how many rows of a list fit.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    row: Option<Row<'_>>,
    evidence: &Evidence,
    leaks: Option<&Leaks>,
    (part, cursor): (Part, usize),
    palette: Palette,
) -> usize {
    let Some(row) = row else {
        put(
            frame,
            area,
            [Line::raw("this account is gone; Esc goes back")],
        );
        return 1;
    };
    let lines = numbers(&row, evidence, palette);
    let (top, lists) = split_top(area, u16::try_from(lines.len()).unwrap_or(0));
    put(frame, top, lines);
    let room = usize::from(lists.height).saturating_sub(1);
    let list = |one: Part, columns: u16| {
        let cursor = (one == part).then_some(cursor);
        // The row of the cursor is the last one at the most.
        let first = cursor.map_or(0, |at| (at + 1).saturating_sub(room.max(1)));
        let columns = usize::from(columns);
        let mut lines = match one {
            Part::Classes => classes(row.account, leaks, first, room, columns),
            Part::Principals => principals(row.account, first, room, columns),
        };
        let mark = if one == part { "> " } else { "  " };
        lines[0] = format!("{mark}{}", lines[0].trim_start());
        let selected = cursor.map(|at| at - first + 1);
        lines
            .into_iter()
            .enumerate()
            .map(|(number, text)| match number {
                0 => Line::styled(text, palette.head()),
                _ if Some(number) == selected && one == Part::Classes => {
                    let text = format!(">{}", text.get(1..).unwrap_or_default());
                    Line::styled(text, palette.selected())
                }
                _ if text.starts_with(SUSPECT) => Line::styled(text, palette.warning()),
                _ => Line::raw(text),
            })
            .collect::<Vec<_>>()
    };
    if lists.width < WIDE {
        put(frame, lists, list(part, lists.width));
        return room;
    }
    let left_columns = lists.width * 3 / 5;
    let left = Rect {
        width: left_columns,
        ..lists
    };
    let right = Rect {
        x: lists.x + left_columns,
        width: lists.width - left_columns,
        ..lists
    };
    put(frame, left, list(Part::Classes, left.width));
    put(frame, right, list(Part::Principals, right.width));
    room
}

fn numbers(row: &Row<'_>, evidence: &Evidence, palette: Palette) -> Vec<Line<'static>> {
    let account = row.account;
    let why_waited = match account.wait_milliseconds_total {
        0 => None,
        _ => wait_reason(account, evidence),
    };
    let why_waited = why_waited.map_or_else(String::new, |reason| format!(" ({reason})"));
    let cell = |column: Column| column.cell(row);
    let soft = account.soft_limit_bytes;
    let retired = match account.retired_loaders {
        0 => String::new(),
        loaders => format!("  leaked loaders {}", amount::count(loaders)),
    };
    let left = match account.left_behind_bytes {
        0 => String::new(),
        bytes => format!("  left by undeployed versions {}", amount::bytes(bytes)),
    };
    let threads = match account.threads_left_behind {
        0 => String::new(),
        threads => format!(
            "  threads of undeployed versions {}",
            amount::count(threads)
        ),
    };
    let door = match account.door {
        Door::Shut => "  door shut",
        Door::None | Door::Open | Door::Unknown => "",
    };
    let reserve = match account.reserve_bytes {
        Some(bytes) => format!("  reserve {}", amount::bytes(bytes)),
        None => String::new(),
    };
    let own = match account.tree {
        None => String::new(),
        Some(_) => format!(
            "  live without its scopes {}",
            amount::bytes(account.live_bytes)
        ),
    };
    vec![
        Line::styled(
            format!(
                "{} ({}) in {}",
                printable::fitted_name(&account.name, MAX_NAME_COLUMNS),
                cell(Column::Kind),
                printable::escaped(row.address),
            ),
            palette.title(),
        ),
        Line::styled(
            format!(
                "{}{door}  live {}  limit {}  {}  soft limit {}{reserve}",
                cell(Column::State),
                cell(Column::Live),
                cell(Column::Limit),
                cell(Column::Percent),
                soft.map_or_else(|| "-".into(), amount::bytes),
            ),
            palette.row(account.state, row.is_stale),
        ),
        Line::raw(format!(
            "charged {}  objects {}  allocating {}/s  live {}/min  ever {}",
            cell(Column::Charged),
            cell(Column::Objects),
            cell(Column::Allocated),
            cell(Column::Trend),
            amount::bytes(account.allocated_bytes_total),
        )),
        Line::raw(format!(
            "refused {}  would have been {}  deferred {}  turned away {}  waited {}{why_waited}{retired}{threads}{left}{own}",
            cell(Column::Refused),
            cell(Column::WouldRefuse),
            cell(Column::Deferred),
            cell(Column::TurnedAway),
            cell(Column::Waited),
        )),
    ]
}

fn classes(
    account: &Account,
    leaks: Option<&Leaks>,
    first: usize,
    room: usize,
    columns: usize,
) -> Vec<String> {
    let name_columns = columns.saturating_sub(2 + 3 * (AMOUNT_COLUMNS + 1));
    let line = |mark: &str, name: &str, amounts: [&str; 3]| {
        let mut line = format!("{mark}{}", padded(name, name_columns));
        for amount in amounts {
            line.push_str(&format!(" {amount:>AMOUNT_COLUMNS$}"));
        }
        line
    };
    let mut lines = vec![line("  ", "CLASS", ["LIVE", "OBJECTS", "ALLOCATED"])];
    let rows = account.classes.iter().skip(first).take(room);
    lines.extend(rows.map(|class| {
        let suspect = suspect(leaks, &account.name, &class.class);
        line(
            if suspect.is_some() { SUSPECT } else { "  " },
            &class.class,
            [
                &amount::bytes(class.live_bytes),
                &amount::count(class.live_objects),
                &amount::bytes(class.allocated_bytes_total),
            ],
        )
    }));
    add_omitted(&mut lines, account.classes_omitted, room, "classes");
    lines
}

fn principals(account: &Account, first: usize, room: usize, columns: usize) -> Vec<String> {
    let name_columns = columns.saturating_sub(2 + AMOUNT_COLUMNS + 1);
    let line = |name: &str, amount: &str| {
        format!("  {} {amount:>AMOUNT_COLUMNS$}", padded(name, name_columns))
    };
    let mut lines = vec![line("PRINCIPAL", "LIVE")];
    let rows = account.principals.iter().skip(first).take(room);
    lines.extend(rows.map(|one| line(&one.name, &amount::bytes(one.live_bytes))));
    add_omitted(&mut lines, account.principals_omitted, room, "principals");
    lines
}

fn add_omitted(lines: &mut Vec<String>, omitted: u64, room: usize, what: &str) {
    if omitted > 0 && lines.len() <= room {
        lines.push(format!("  and {} more {what}", amount::count(omitted)));
    }
}
