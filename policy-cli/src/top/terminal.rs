//! The real terminal: raw while `top` runs, and given back however it ends.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};

use super::model::{Action, Key, Model};
use super::poller::Pollers;
use super::view::{self, Palette};
use crate::live::Classes;

/// Longest time until a poll, a signal or a change of size is seen.
const TICK: Duration = Duration::from_millis(50);

/// What a key of the terminal means.
enum Pressed {
    Known(Key),
    Interrupt,
    Suspend,
    Redraw,
    Nothing,
}

/// Runs until the user or a signal ends it.
///
/// # Errors
/// A terminal that cannot be drawn on or read, or a poller that failed.
pub(crate) fn run(model: &mut Model, pollers: &Pollers, palette: Palette) -> io::Result<ExitCode> {
    let signal = Arc::new(AtomicUsize::new(0));
    for number in [SIGTERM, SIGHUP, SIGINT, SIGQUIT] {
        let value = usize::try_from(number).unwrap_or_default();
        signal_hook::flag::register_usize(number, Arc::clone(&signal), value)?;
    }
    // Sets a hook that gives the terminal back before a panic is told.
    let mut terminal = ratatui::try_init()?;
    let done = until_quit(&mut terminal, model, pollers, palette, &signal);
    let restored = ratatui::try_restore();
    done?;
    restored?;
    if let Ok(number @ 1..) = i32::try_from(signal.load(Ordering::Relaxed)) {
        // The caller is to see what ended it.
        signal_hook::low_level::emulate_default_handler(number)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn until_quit(
    terminal: &mut DefaultTerminal,
    model: &mut Model,
    pollers: &Pollers,
    palette: Palette,
    signal: &AtomicUsize,
) -> io::Result<()> {
    let mut is_changed = true;
    while signal.load(Ordering::Relaxed) == 0 {
        while let Some(poll) = pollers.next(Duration::ZERO) {
            model.poll(poll);
            is_changed = true;
        }
        if pollers.has_failed() {
            return Err(io::Error::other("a thread of this command failed"));
        }
        if is_changed {
            let mut page = 1;
            terminal.draw(|frame| page = view::draw(frame, model, palette))?;
            model.set_page(page);
            is_changed = false;
        }
        if !event::poll(TICK)? {
            continue;
        }
        match pressed(&event::read()?) {
            Pressed::Known(key) => match model.key(key) {
                Action::Quit => return Ok(()),
                Action::Draw => is_changed = true,
                Action::Classes { jvm, all } => {
                    let classes = if all { Classes::All } else { Classes::Top };
                    pollers.ask_for(jvm, classes);
                    is_changed = true;
                }
            },
            Pressed::Interrupt => return Ok(()),
            Pressed::Suspend => {
                ratatui::try_restore()?;
                signal_hook::low_level::emulate_default_handler(SIGTSTP)?;
                *terminal = ratatui::try_init()?;
                terminal.clear()?;
                is_changed = true;
            }
            Pressed::Redraw => is_changed = true,
            Pressed::Nothing => {}
        }
    }
    Ok(())
}

fn pressed(event: &Event) -> Pressed {
    let key = match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => key,
        Event::Resize(..) => return Pressed::Redraw,
        _ => return Pressed::Nothing,
    };
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Pressed::Interrupt,
            KeyCode::Char('z') => Pressed::Suspend,
            _ => Pressed::Nothing,
        };
    }
    known(key).map_or(Pressed::Nothing, Pressed::Known)
}

fn known(key: &KeyEvent) -> Option<Key> {
    Some(match key.code {
        KeyCode::Char(typed) => Key::Char(typed),
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Tab | KeyCode::BackTab => Key::Tab,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        _ => return None,
    })
}
