//! `heapwarden manual`: the command's manual pages, one for it and one for each subcommand. For those
//! who make packages.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Command};
use clap_mangen::Man;

/// The arguments of `heapwarden manual`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The folder to write into
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Writes the pages of `command`.
///
/// # Errors
/// None: what cannot be written is told on standard error.
pub(crate) fn run(arguments: &Arguments, command: Command) -> io::Result<ExitCode> {
    for (name, page) in pages(command)? {
        let file = arguments.folder.join(format!("{name}.1"));
        if let Err(error) = fs::write(&file, page) {
            eprintln!("heapwarden: {} cannot be written: {error}", file.display());
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The pages by name.
fn pages(command: Command) -> io::Result<Vec<(String, Vec<u8>)>> {
    // `help` repeats them all, and has nothing to say of itself.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    let parent = command.get_name().to_owned();
    for child in command
        .get_subcommands()
        .filter(|child| !child.is_hide_set())
    {
        let name = format!("{parent}-{}", child.get_name());
        // The title that the page shows; the synopsis has the words as they are typed.
        let child = child.clone().display_name(&name);
        pages.push((name, page(child)?));
    }
    pages.push((parent, page(command)?));
    Ok(pages)
}

fn page(command: Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let source = concat!("heapwarden ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command).date("").source(source);
    man.manual("Heapwarden").render(&mut page)?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn every_visible_subcommand_has_a_page_that_names_its_options() {
        let pages = pages(crate::Cli::command()).unwrap();
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        assert!(names.contains(&"heapwarden"), "{names:?}");
        assert!(!names.contains(&"heapwarden-manual"), "{names:?}");
        for child in crate::Cli::command().get_subcommands() {
            let name = format!("heapwarden-{}", child.get_name());
            assert_eq!(
                names.contains(&name.as_str()),
                !child.is_hide_set(),
                "{name}"
            );
        }
        let (_, advise) = (pages.iter())
            .find(|(name, _)| name == "heapwarden-advise")
            .unwrap();
        let advise = String::from_utf8_lossy(advise).into_owned();
        assert!(advise.contains("max\\-moves"), "{advise}");
    }
}
