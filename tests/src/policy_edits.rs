//! Every way in which programs write a file that others read.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How a content gets into the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// Truncated and written at once.
    InPlace,
    /// Truncated and written in small pieces.
    InPieces,
    /// Truncated, half of it written, then after a pause the rest.
    Torn,
    /// Written over what was there without truncation, with a pause in the middle.
    Overwritten,
    /// Written beside the file and renamed over it.
    Renamed,
    /// The old file moved away as a backup, then the new one written in its place.
    BackedUp,
    /// Removed and, after a pause, written anew.
    Recreated,
    /// A link to a new file renamed over it.
    Linked,
    /// As Kubernetes does it: the link `..data` is swapped, and the file is a link through it.
    Mounted,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 9] = [
        Way::InPlace,
        Way::InPieces,
        Way::Torn,
        Way::Overwritten,
        Way::Renamed,
        Way::BackedUp,
        Way::Recreated,
        Way::Linked,
        Way::Mounted,
    ];
}

/// Something that stands in the file's place and cannot be read as a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Obstacle {
    /// Nothing.
    Nothing,
    /// A directory.
    Directory,
    /// A link that leads nowhere.
    DeadLink,
    /// A link to itself.
    Circle,
    /// A file that nobody may read; means nothing to a superuser, see [`Editor::obstacles`].
    Unreadable,
}

/// How long after a swap of the link the file behind it is written without a pause: no program pauses there, and no
/// event tells a reader of it before it has followed the link.
const FOLLOWED: Duration = Duration::from_millis(500);

/// Writes one file in every way. Knows nothing of what the file says.
#[derive(Debug)]
pub struct Editor {
    file: PathBuf,
    edits: u64,
    linked: Option<Instant>,
}

impl Editor {
    /// Writes `file`, whose folder is there and takes helper files as well.
    #[must_use]
    pub fn new(file: &Path) -> Editor {
        Editor {
            file: file.to_owned(),
            edits: 0,
            linked: None,
        }
    }

    /// The obstacles that stop a reader of this user: a superuser reads what nobody may.
    #[must_use]
    pub fn obstacles(&self) -> Vec<Obstacle> {
        let mut obstacles = vec![
            Obstacle::Nothing,
            Obstacle::Directory,
            Obstacle::DeadLink,
            Obstacle::Circle,
        ];
        if !rustix::process::geteuid().is_root() {
            obstacles.push(Obstacle::Unreadable);
        }
        obstacles
    }

    /// Makes `content` the file's content, resting for `pause` where `way` has a pause; not
    /// behind a link that was swapped half a second ago or less.
    ///
    /// # Panics
    /// If the folder cannot be written.
    pub fn write(&mut self, way: Way, content: &[u8], pause: Duration) {
        self.edits += 1;
        let half = half_of(content);
        match way {
            Way::InPlace | Way::InPieces | Way::Torn | Way::Overwritten => {
                self.make_writable();
                let pause = match self.linked {
                    Some(linked) if self.file.is_symlink() && linked.elapsed() < FOLLOWED => {
                        Duration::ZERO
                    }
                    _ => pause,
                };
                let options = &mut File::options();
                let fresh = way != Way::Overwritten;
                let options = options.create(true).truncate(fresh).write(true);
                let mut file = options.open(&self.file).expect("writable");
                let pieces: Vec<&[u8]> = match way {
                    Way::InPlace => vec![content],
                    Way::InPieces => content.chunks(content.len() / 5 + 1).collect(),
                    _ => vec![&content[..half], &content[half..]],
                };
                for (number, piece) in pieces.into_iter().enumerate() {
                    if number > 0 && way != Way::InPieces {
                        std::thread::sleep(pause);
                    }
                    file.write_all(piece).expect("writable");
                }
                file.set_len(content.len() as u64).expect("writable");
            }
            Way::Renamed => {
                self.clear_directory();
                let beside = self.beside("new");
                fs::write(&beside, content).expect("writable");
                fs::rename(beside, &self.file).expect("the same folder");
            }
            Way::BackedUp => {
                self.clear_directory();
                let backup = self.beside("bak");
                // Nothing may be there to be kept.
                let _ = fs::rename(&self.file, backup);
                fs::write(&self.file, content).expect("writable");
            }
            Way::Recreated => {
                self.clear();
                std::thread::sleep(pause);
                fs::write(&self.file, content).expect("writable");
            }
            Way::Linked => {
                self.clear_directory();
                let target = self.beside(&format!("target{}", self.edits % 2));
                self.replace(&target, content);
                self.link(&target);
                self.linked = Some(Instant::now());
            }
            Way::Mounted => {
                self.mount(content);
                self.linked = Some(Instant::now());
            }
        }
    }

    /// Appends to what is there, if that is a file.
    ///
    /// # Panics
    /// If it is there and cannot be written.
    pub fn append(&mut self, content: &[u8]) {
        if self.file.is_file() {
            let mut file = File::options()
                .append(true)
                .open(&self.file)
                .expect("writable");
            file.write_all(content).expect("writable");
        }
    }

    /// Puts an obstacle in the file's place.
    ///
    /// # Panics
    /// If the folder cannot be written.
    pub fn obstruct(&mut self, obstacle: Obstacle) {
        self.edits += 1;
        self.clear();
        match obstacle {
            Obstacle::Nothing => {}
            Obstacle::Directory => fs::create_dir(&self.file).expect("writable"),
            Obstacle::DeadLink => self.link(&self.beside("nowhere")),
            Obstacle::Circle => self.link(&self.file.clone()),
            Obstacle::Unreadable => {
                fs::write(&self.file, "").expect("writable");
                let nobody = fs::Permissions::from_mode(0o000);
                fs::set_permissions(&self.file, nobody).expect("ours");
            }
        }
    }

    /// One after the other, releases of a ConfigMap, of which the last one stays.
    fn mount(&mut self, content: &[u8]) {
        self.clear_directory();
        let folder = self.folder();
        let name = self.file.file_name().expect("a file has a name");
        let data = folder.join("..data");
        let before = fs::read_link(&data).ok();
        let release = PathBuf::from(format!("..release_{}", self.edits));
        fs::create_dir(folder.join(&release)).expect("writable");
        fs::write(folder.join(&release).join(name), content).expect("writable");
        let link = folder.join("..data_tmp");
        symlink(&release, &link).expect("writable");
        fs::rename(link, &data).expect("the same folder");
        let through = Path::new("..data").join(name);
        if fs::read_link(&self.file).ok().as_ref() != Some(&through) {
            self.link(&through);
        }
        if let Some(before) = before {
            fs::remove_dir_all(folder.join(before)).expect("it was there");
        }
    }

    /// Makes the file a link, in one step.
    fn link(&self, target: &Path) {
        let link = self.beside("link");
        symlink(target, &link).expect("writable");
        fs::rename(link, &self.file).expect("the same folder");
    }

    /// Puts a new file in the place of `path`: a file that a link may still lead to is not written over.
    fn replace(&self, path: &Path, content: &[u8]) {
        let beside = self.beside("next");
        fs::write(&beside, content).expect("writable");
        fs::rename(beside, path).expect("the same folder");
    }

    /// Removes what cannot be opened for writing.
    fn make_writable(&self) {
        if File::options().append(true).open(&self.file).is_err() {
            self.clear();
        }
    }

    fn clear(&self) {
        self.clear_directory();
        let _ = fs::remove_file(&self.file);
    }

    fn clear_directory(&self) {
        // Fails where it is none, as it nearly always is.
        let _ = fs::remove_dir(&self.file);
    }

    fn folder(&self) -> &Path {
        self.file.parent().expect("a file has a folder")
    }

    fn beside(&self, extension: &str) -> PathBuf {
        self.file.with_extension(extension)
    }
}

/// The end of the line in the middle of `content`: a TOML file cut off there is one still.
fn half_of(content: &[u8]) -> usize {
    let middle = content.len() / 2;
    let line = content[middle..].iter().position(|byte| *byte == b'\n');
    line.map_or(middle, |length| middle + length + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_leads_to_the_content_from_every_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file.toml");
        let mut editor = Editor::new(&file);
        let mut number = 0;
        for first in Way::ALL {
            for then in Way::ALL {
                for way in [first, then] {
                    number += 1;
                    let content = "x".repeat(number % 50) + &format!("\n{number}\n");
                    editor.write(way, content.as_bytes(), Duration::ZERO);
                    let read = fs::read_to_string(&file).expect("it is there");
                    assert_eq!(read, content, "{first:?}, {then:?}");
                }
            }
        }
    }

    #[test]
    fn every_obstacle_is_one_and_is_overcome_in_every_way() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file.toml");
        let mut editor = Editor::new(&file);
        for obstacle in editor.obstacles() {
            for way in Way::ALL {
                editor.obstruct(obstacle);
                assert!(fs::read_to_string(&file).is_err(), "{obstacle:?}");
                editor.append(b"nothing to append to");
                editor.write(way, b"whole\n", Duration::ZERO);
                let read = fs::read_to_string(&file).expect("it is there");
                assert_eq!(read, "whole\n", "{obstacle:?}, {way:?}");
            }
        }
    }

    #[test]
    fn halves_end_with_a_line() {
        assert_eq!(half_of(b"a\nbb\ncc\nd\n"), 8);
        assert_eq!(half_of(b"abcd"), 2);
        assert_eq!(half_of(b""), 0);
    }
}
