//! The protocol against sockets and files made for the tests.

use super::*;
use std::os::unix::net::UnixListener;

#[test]
fn the_command_is_five_texts_with_a_zero_byte_behind_each() {
    let sent = message("/opt/a b/lib.so", "config=/c,listen=off").unwrap();
    assert_eq!(
        sent,
        b"1\0load\0/opt/a b/lib.so\0true\0config=/c,listen=off\0"
    );
    assert!(matches!(
        message("/l", &"x".repeat(1025)),
        Err(AttachError::TooLong { bytes: 1025, .. })
    ));
    assert!(matches!(message("/l\0", ""), Err(AttachError::ZeroByte(_))));
}

#[test]
fn answers_are_judged() {
    assert!(check_answer(b"0\nreturn code: 0\n").is_ok());
    let refused = |answer: &[u8]| match check_answer(answer) {
        Err(AttachError::Refused(why)) => why,
        other => panic!("{other:?}"),
    };
    let disabled = b"0\nDynamic agent loading is not enabled. Use -XX:+EnableDynamicAgentLoading to launch target VM.\n";
    assert!(refused(disabled).contains("EnableDynamicAgentLoading"));
    assert_eq!(
        refused(b"0\n/l.so: cannot open\x1b shared object\n"),
        "/l.so: cannot open\\u{1b} shared object"
    );
    assert_eq!(refused(b"101\n"), "error 101");
    assert_eq!(
        refused(b"0\nreturn code: 4294967295\n"),
        "return code: 4294967295"
    );
    assert!(matches!(check_answer(b""), Err(AttachError::ClosedAtOnce)));
    assert!(matches!(
        check_answer(b"\xff\xfe\x00"),
        Err(AttachError::NotUnderstood(_))
    ));
}

/// A socket whose peer does `act` with the first connection.
fn peer(act: impl FnOnce(UnixStream) + Send + 'static) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || act(listener.accept().unwrap().0));
    (folder, path)
}

#[test]
fn a_message_is_exchanged() {
    let (_folder, path) = peer(|mut stream| {
        let mut heard = [0; 4];
        stream.read_exact(&mut heard).unwrap();
        stream.write_all(b"0\n").unwrap();
        stream.write_all(&heard).unwrap();
    });
    let answer = exchange(path, b"ping".to_vec(), Duration::from_secs(60)).unwrap();
    assert_eq!(answer, b"0\nping");
}

#[test]
fn a_peer_that_closes_at_once_or_never_ends_is_told_from_an_answer() {
    let (_folder, path) = peer(drop);
    let closed = exchange(path, vec![b'x'; 1 << 20], Duration::from_secs(60));
    assert!(
        matches!(closed, Err(AttachError::ClosedAtOnce))
            || closed.is_ok_and(|answer| answer.is_empty())
    );
    let (_folder, path) = peer(|mut stream| while stream.write_all(&[b'x'; 4096]).is_ok() {});
    let endless = exchange(path, b"x".to_vec(), Duration::from_secs(60)).unwrap();
    assert_eq!(endless.len() as u64, MAX_ANSWER_BYTES);
    let (_folder, path) = peer(|stream| {
        std::thread::park();
        drop(stream);
    });
    let silent = exchange(path, b"x".to_vec(), Duration::from_millis(50));
    assert!(matches!(silent, Err(AttachError::NoAnswer)));
}

#[test]
fn only_a_socket_of_the_jvms_user_is_used() {
    let directory = tempfile::tempdir().unwrap();
    let folder = Folder::open(directory.path()).unwrap();
    let own = rustix::process::geteuid().as_raw();
    let socket = |user| Socket {
        name: ".java_pid7".to_owned(),
        folder: &folder,
        user,
        id: 7,
    };
    let path = directory.path().join(".java_pid7");
    assert!(!socket(own).is_there().unwrap());
    std::os::unix::fs::symlink("/tmp", &path).unwrap();
    assert!(matches!(
        socket(own).is_there(),
        Err(AttachError::NotTheSocket { .. })
    ));
    std::fs::remove_file(&path).unwrap();
    let _listener = UnixListener::bind(&path).unwrap();
    assert!(socket(own).is_there().unwrap());
    assert!(matches!(
        socket(own + 1).is_there(),
        Err(AttachError::NotTheSocket { .. })
    ));
}

#[test]
fn the_trigger_goes_when_it_is_done() {
    let directory = tempfile::tempdir().unwrap();
    let folder = Folder::open(directory.path()).unwrap();
    let own = (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
    let path = directory.path().join(".attach_pid7");
    let attach_file = AttachFile::make(&folder, ".attach_pid7", own).unwrap();
    assert!(path.exists());
    drop(attach_file);
    assert!(!path.exists());
    std::fs::write(&path, "").unwrap();
    drop(AttachFile::make(&folder, ".attach_pid7", own).unwrap());
    assert!(!path.exists(), "a left-over goes as well");
}
