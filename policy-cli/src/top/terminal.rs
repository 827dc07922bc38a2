//! The terminal: in raw mode while `top` runs, and restored however it ends.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;

use super::model::{Action, Key, Model};
use super::poller::Pollers;
use super::view::{self, Palette};

/// Longest time until a poll, a signal or a change of size is seen.
const TICK: Duration = Duration::from_millis(50);

/// The meaning of an event of the terminal.
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
    end_at_signals()?;
    // Installs a hook that restores the terminal before a panic is printed.
    let mut terminal = ratatui::try_init()?;
    let done = until_quit(&mut terminal, model, pollers, palette);
    let restored = ratatui::try_restore();
    done?;
    restored?;
    Ok(ExitCode::SUCCESS)
}

/// Makes signals restore the terminal and then end the process by the same signal, so that the
/// caller sees what ended it. This needs its own thread: when a terminal goes away, the library that
/// reads it never returns (its reads return nothing, forever).
fn end_at_signals() -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGQUIT])?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            if let Some(number) = signals.forever().next() {
                // The terminal may be gone.
                let _ = ratatui::try_restore();
                let _ = signal_hook::low_level::emulate_default_handler(number);
                // If the default action does not end the process, this does.
                std::process::exit(128 + number);
            }
        })?;
    Ok(())
}

fn until_quit(
    terminal: &mut DefaultTerminal,
    model: &mut Model,
    pollers: &Pollers,
    palette: Palette,
) -> io::Result<()> {
    let mut is_changed = true;
    loop {
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
                Action::Ask { jvm, wish } => {
                    pollers.ask_for(jvm, wish);
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
