//! Draws the screen of `top` from the model. On a small terminal the least important columns and
//! lines are left out; no size makes it fail.

mod account;
mod accounts;
mod class;
mod drawing;
mod help;
mod jvms;
mod palette;

use ratatui::Frame;
use ratatui::text::Line;

use super::model::{Model, Screen};
use drawing::{put, split_bottom, split_top};

pub(crate) use palette::Palette;

/// Draws everything, and returns the number of rows on a page.
pub(crate) fn draw(frame: &mut Frame<'_>, model: &Model, palette: Palette) -> usize {
    let area = frame.area();
    let (title, rest) = split_top(area, 1);
    put(frame, title, [title_line(model, palette)]);
    // The line of keys is left out first: `?` shows the keys, too.
    let (rest, footer) = split_bottom(rest, u16::from(area.height > 4));
    put(frame, footer, [footer_line(model, palette)]);
    let most_jvms = if area.height < 6 {
        0
    } else {
        (area.height / 4).max(1)
    };
    let lines = jvms::lines(model, usize::from(most_jvms), area.width, palette);
    let (heads, body) = split_top(rest, u16::try_from(lines.len()).unwrap_or(0));
    put(frame, heads, lines);
    let page = match &model.screen {
        Screen::List | Screen::Filter => accounts::draw(frame, body, model, palette),
        Screen::Account {
            of, part, scroll, ..
        } => {
            let reading = model.jvms.get(of.jvm).and_then(|jvm| jvm.reading.as_ref());
            let evidence = reading.map(|reading| reading.accounts.evidence);
            account::draw(
                frame,
                body,
                model.row(of),
                &evidence.unwrap_or_default(),
                reading.and_then(|reading| reading.leaks.as_ref()),
                (*part, *scroll),
                palette,
            )
        }
        Screen::Class { of, class, .. } => {
            let reading = model.jvms.get(of.jvm).and_then(|jvm| jvm.reading.as_ref());
            let leaks = reading.and_then(|reading| reading.leaks.as_ref());
            class::draw(frame, body, model.row(of), class, leaks, palette);
            1
        }
    };
    if model.shows_help {
        help::draw(frame, area);
    }
    page
}

fn title_line(model: &Model, palette: Palette) -> Line<'static> {
    let down = model.jvms.iter().filter(|jvm| jvm.error.is_some()).count();
    let all: usize = model
        .jvms
        .iter()
        .filter_map(|jvm| jvm.reading.as_ref())
        .map(|reading| reading.accounts.accounts.len())
        .sum();
    let mut parts = vec!["heapwarden top".to_owned()];
    if model.is_paused() {
        parts.push("PAUSED".into());
    }
    parts.push(match (model.jvms.len(), down) {
        (1, 0) => "1 JVM".into(),
        (jvms, 0) => format!("{jvms} JVMs"),
        (jvms, down) => format!("{down} of {jvms} JVMs down"),
    });
    parts.push(match model.filter.is_empty() {
        true => format!("{all} accounts"),
        false => format!("{} of {all} accounts", model.rows().len()),
    });
    let reversed = if model.is_reversed { ", reversed" } else { "" };
    parts.push(format!("sorted by {}{reversed}", model.sort.name()));
    Line::styled(parts.join("  "), palette.title())
}

fn footer_line(model: &Model, palette: Palette) -> Line<'static> {
    let text = match &model.screen {
        Screen::Filter => format!("filter: {}_   Enter keep  Esc clear", model.filter),
        Screen::List if !model.filter.is_empty() => {
            format!("filter: {}   Esc clear  / change  ? help", model.filter)
        }
        Screen::List => "q quit  ? help  / filter  < > sort  r reverse  Enter open  p pause".into(),
        Screen::Class { .. } => "Esc back  Up Down neighbours  p pause  q quit".into(),
        Screen::Account { all_classes, .. } => {
            let classes = if *all_classes {
                "the largest classes"
            } else {
                "all classes"
            };
            format!("Esc back  Enter open  Tab classes or principals  a {classes}  p pause  q quit")
        }
    };
    Line::styled(text, palette.footer())
}

#[cfg(test)]
mod tests;
