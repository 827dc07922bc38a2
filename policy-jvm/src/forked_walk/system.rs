//! The system calls of a child, each safe to make after a fork of a process with many threads.

use std::ffi::CStr;
use std::os::fd::RawFd;
use std::ptr;
use std::time::Duration;

pub(super) type Pid = libc::pid_t;

/// Ends the process at once: no handler of the VM or of the C library runs.
pub(super) fn exit_now(code: i32) -> ! {
    // SAFETY: ends the process; touches no memory.
    unsafe { libc::_exit(code) }
}

/// Forks with the C library's `fork`, which leaves `malloc` usable in the child: HotSpot's walk calls it.
pub(super) fn fork() -> Result<Pid, i32> {
    // SAFETY: the child runs this module's code, or the VM's operation on the one thread that it has.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)),
        pid => Ok(pid),
    }
}

pub(super) fn own_id() -> Pid {
    // SAFETY: asks for a number.
    unsafe { libc::getpid() }
}

pub(super) fn parent_id() -> Pid {
    // SAFETY: asks for a number.
    unsafe { libc::getppid() }
}

/// Dies when the parent's thread ends; false if the parent has ended already.
pub(super) fn die_with(parent: Pid) -> bool {
    // SAFETY: sets an attribute of this process.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    parent_id() == parent
}

/// Blocks all signals and gives each its default effect: a fault ends this process and writes no report.
pub(super) fn forget_signals() {
    // SAFETY: the structures are valid when zeroed, and live through the calls; a signal that cannot be changed
    // is left alone by the kernel.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, ptr::null_mut());
        let mut default: libc::sigaction = std::mem::zeroed();
        default.sa_sigaction = libc::SIG_DFL;
        for signal in 1..=64 {
            libc::sigaction(signal, &default, ptr::null_mut());
        }
    }
}

/// Closes every descriptor but `kept`, which gets a number above 2; the first three lead nowhere. Returns the
/// new number of `kept`.
pub(super) fn close_all_but(kept: RawFd) -> Option<RawFd> {
    // SAFETY: descriptors are numbers; nothing of this process uses them any more.
    unsafe {
        let kept = match kept {
            0..=2 => libc::fcntl(kept, libc::F_DUPFD, 3),
            kept => kept,
        };
        if kept < 0 {
            return None;
        }
        let range =
            |first: u32, last: u32| libc::syscall(libc::SYS_close_range, first, last, 0u32) == 0;
        let below = range(0, kept as u32 - 1);
        if !(below && range(kept as u32 + 1, u32::MAX)) {
            // Kernels before 5.9.
            let mut limit: libc::rlimit = std::mem::zeroed();
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
            for other in 0..limit.rlim_cur.min(1 << 20) as RawFd {
                if other != kept {
                    libc::close(other);
                }
            }
        }
        for _ in 0..3 {
            libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        }
        Some(kept)
    }
}

pub(super) fn close(descriptor: RawFd) {
    // SAFETY: the caller gives up the number.
    unsafe { libc::close(descriptor) };
}

/// The lowest priority of processor and disk, the first to be ended for memory, and limits.
pub(super) fn stand_back(cpu: Duration, virtual_bytes: u64) {
    const IO_CLASS_IDLE: i32 = 3 << 13;
    const WHO_PROCESS: i32 = 1;
    // SAFETY: sets attributes of this process.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, 19);
        libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, IO_CLASS_IDLE);
        libc::prctl(libc::PR_SET_NAME, c"heap-walk".as_ptr());
    }
    write_file(c"/proc/self/oom_score_adj", b"1000");
    let seconds = cpu.as_secs().max(1);
    for (resource, most) in [
        (libc::RLIMIT_CPU, seconds),
        (libc::RLIMIT_AS, virtual_bytes),
        (libc::RLIMIT_FSIZE, 0),
        (libc::RLIMIT_CORE, 0),
    ] {
        limit(resource, most);
    }
}

fn limit(resource: libc::__rlimit_resource_t, most: u64) {
    let limit = libc::rlimit {
        rlim_cur: most,
        rlim_max: most,
    };
    // SAFETY: sets a limit of this process.
    unsafe { libc::setrlimit(resource, &limit) };
}

/// From now on this process opens no file, socket or pipe. If the VM finds an error of its own in the walk, it then
/// can neither write a report nor run a program that the operator names for that case (`-XX:OnError`): the program's
/// own libraries could not be opened.
pub(super) fn open_nothing_more() {
    limit(libc::RLIMIT_NOFILE, 0);
}

/// For tests: no more memory.
pub(super) fn map_nothing_more() {
    limit(libc::RLIMIT_AS, 0);
}

/// For tests: uses up the processor time that is allowed.
pub(super) fn spin() -> ! {
    limit(libc::RLIMIT_CPU, 1);
    loop {
        std::hint::spin_loop();
    }
}

/// For tests: what an operator or the kernel does to a process.
pub(super) fn kill(process: Pid) {
    // SAFETY: the caller's own id, or that of a child that is not reaped.
    unsafe { libc::kill(process, libc::SIGKILL) };
}

fn write_file(path: &CStr, text: &[u8]) {
    // SAFETY: the path ends with a zero byte, and the text has its length.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if file >= 0 {
            libc::write(file, text.as_ptr().cast(), text.len());
            libc::close(file);
        }
    }
}

/// Reads a file up to the length of the buffer; how many bytes there are.
pub(super) fn read_file(path: &CStr, into: &mut [u8]) -> usize {
    let mut filled = 0;
    // SAFETY: the path ends with a zero byte; each read stays within the rest of the buffer.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return 0;
        }
        while filled < into.len() {
            let rest = &mut into[filled..];
            let got = libc::read(file, rest.as_mut_ptr().cast(), rest.len());
            if got <= 0 {
                break;
            }
            filled += got as usize;
        }
        libc::close(file);
    }
    filled
}

/// Writes all of it; false if the reader is gone.
pub(super) fn send(pipe: RawFd, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        // SAFETY: the bytes are live, and the length is theirs.
        match unsafe { libc::write(pipe, bytes.as_ptr().cast(), bytes.len()) } {
            count if count > 0 => bytes = &bytes[count as usize..],
            _ => return false,
        }
    }
    true
}

/// Whether the reader of a pipe has closed it.
pub(super) fn is_unread(pipe: RawFd) -> bool {
    let mut asked = libc::pollfd {
        fd: pipe,
        events: 0,
        revents: 0,
    };
    // SAFETY: one structure, which lives through the call.
    let answered = unsafe { libc::poll(&mut asked, 1, 0) };
    answered > 0 && asked.revents & libc::POLLERR != 0
}

/// The processor time of this thread.
pub(super) fn thread_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure lives through the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The processor time of a child that is not reaped; nothing of one that has ended.
pub(super) fn process_time(of: Pid) -> Duration {
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: clock and structure live through the calls.
    let is_read = unsafe {
        libc::clock_getcpuclockid(of, &mut clock) == 0 && libc::clock_gettime(clock, &mut time) == 0
    };
    match is_read {
        true => Duration::new(time.tv_sec as u64, time.tv_nsec as u32),
        false => Duration::ZERO,
    }
}

/// Stops a child that is not reaped, wherever it is.
pub(super) fn stop(child: Pid) {
    // SAFETY: the id is that of a child that is not reaped, so no other process has it.
    unsafe { libc::kill(child, libc::SIGSTOP) };
}

/// Lets a child go on that was stopped.
pub(super) fn go_on(child: Pid) {
    // SAFETY: as above.
    unsafe { libc::kill(child, libc::SIGCONT) };
}

pub(super) fn sleep(time: Duration) {
    let asked = libc::timespec {
        tv_sec: time.as_secs() as libc::time_t,
        tv_nsec: time.subsec_nanos().into(),
    };
    // SAFETY: the structure lives through the call.
    unsafe { libc::nanosleep(&asked, ptr::null_mut()) };
}

/// How a child stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Child {
    Runs,
    /// It has ended, with the kernel's status, and is reaped.
    Ended(i32),
    /// It is no child of ours, or somebody else has reaped it.
    Unknown,
}

/// Looks at a child by its id, and reaps it if it has ended.
pub(super) fn look_at(child: Pid) -> Child {
    let mut status = 0;
    // SAFETY: the status lives through the call.
    match unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } {
        0 => Child::Runs,
        id if id == child => Child::Ended(status),
        _ => Child::Unknown,
    }
}

/// Kills a child that is not reaped yet, and reaps it.
pub(super) fn end(child: Pid) {
    if look_at(child) != Child::Runs {
        return;
    }
    // SAFETY: the id is that of a child that is not reaped, so no other process has it.
    unsafe { libc::kill(child, libc::SIGKILL) };
    while look_at(child) == Child::Runs {
        sleep(Duration::from_millis(1));
    }
}

/// The signal that ended a process, by its status; 0 for none.
pub(super) fn signal_of(status: i32) -> i32 {
    if libc::WIFSIGNALED(status) {
        libc::WTERMSIG(status)
    } else {
        0
    }
}

/// State and processor time in clock ticks of a process, from its `stat`.
pub(super) fn state(of: Pid) -> Option<(u8, u64)> {
    let mut path = [0u8; 32];
    let path = stat_path(of, &mut path)?;
    let mut text = [0u8; 512];
    let length = read_file(path, &mut text);
    parse_stat(&text[..length])
}

fn stat_path(of: Pid, into: &mut [u8; 32]) -> Option<&CStr> {
    let mut digits = [0u8; 10];
    let (mut rest, mut count) = (u32::try_from(of).ok()?, 0);
    while rest > 0 || count == 0 {
        *digits.get_mut(count)? = b'0' + (rest % 10) as u8;
        rest /= 10;
        count += 1;
    }
    let mut at = 0;
    let mut put = |byte: u8| {
        into[at] = byte;
        at += 1;
    };
    b"/proc/".iter().for_each(|&byte| put(byte));
    digits[..count].iter().rev().for_each(|&byte| put(byte));
    b"/stat\0".iter().for_each(|&byte| put(byte));
    CStr::from_bytes_until_nul(into).ok()
}

fn parse_stat(text: &[u8]) -> Option<(u8, u64)> {
    // The name, in parentheses, may contain anything.
    let after = text.iter().rposition(|&byte| byte == b')')? + 2;
    let mut words = text.get(after..)?.split(|&byte| byte == b' ');
    let state = *words.next()?.first()?;
    let number = |word: Option<&[u8]>| -> Option<u64> {
        word?.iter().try_fold(0u64, |sum, &byte| match byte {
            b'0'..=b'9' => sum.checked_mul(10)?.checked_add((byte - b'0').into()),
            _ => None,
        })
    };
    // Fields 14 and 15, the state being the third.
    let user = number(words.nth(10))?;
    Some((state, user + number(words.next())?))
}

/// Replaces the counters that this process shares with other programs (`hsperfdata`) by a copy of its own: the VM
/// would write the parent's.
pub(super) fn unshare_counters(maps: &mut [u8]) {
    let length = read_file(c"/proc/self/maps", maps);
    for line in maps[..length].split(|&byte| byte == b'\n') {
        let is_counters = line.windows(10).any(|name| name == b"hsperfdata");
        let mut words = line.split(|&byte| byte == b' ');
        let (Some(range), Some(permissions)) = (words.next(), words.next()) else {
            continue;
        };
        if !is_counters || permissions.last() != Some(&b's') {
            continue;
        }
        let mut ends = range.split(|&byte| byte == b'-').map(hexadecimal);
        if let (Some(Some(begin)), Some(Some(end))) = (ends.next(), ends.next())
            && begin < end
        {
            unshare(begin, end - begin);
        }
    }
}

fn hexadecimal(text: &[u8]) -> Option<usize> {
    text.iter().try_fold(0usize, |sum, &byte| {
        let digit = (byte as char).to_digit(16)?;
        sum.checked_mul(16)?.checked_add(digit as usize)
    })
}

fn unshare(begin: usize, bytes: usize) {
    let at = begin as *mut libc::c_void;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the range is a whole mapping that the kernel has just listed, of this process, whose only thread is
    // here. It is replaced by one of the same size with the same contents, by way of a copy elsewhere.
    unsafe {
        let copy = libc::mmap(ptr::null_mut(), bytes, access, anonymous, -1, 0);
        if copy == libc::MAP_FAILED {
            return;
        }
        ptr::copy_nonoverlapping(at.cast::<u8>(), copy.cast::<u8>(), bytes);
        libc::mremap(
            copy,
            bytes,
            bytes,
            libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED,
            at,
        );
    }
}

/// A pipe whose ends no program inherits that this process starts: to be read, to be written.
pub(super) fn pipe() -> Option<(RawFd, RawFd)> {
    let mut ends = [0; 2];
    // SAFETY: room for two numbers.
    let made = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) };
    (made == 0).then_some((ends[0], ends[1]))
}

/// Waits until a pipe can be read, for so long at the most, and reads what there is. `Some(0)` at its end,
/// `None` if nothing came.
pub(super) fn receive(pipe: RawFd, into: &mut [u8], wait: Duration) -> Option<usize> {
    let mut asked = libc::pollfd {
        fd: pipe,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one structure, which lives through the call.
    if unsafe { libc::poll(&mut asked, 1, wait.as_millis() as i32) } <= 0 {
        return None;
    }
    // SAFETY: the read stays within the buffer.
    let got = unsafe { libc::read(pipe, into.as_mut_ptr().cast(), into.len()) };
    usize::try_from(got).ok().or(Some(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_process_is_read_whatever_its_name() {
        let text = b"7 (a) S 1 (b)) S 1 2 3 4 5 6 7 8 9 10 110 220 13";
        assert_eq!(parse_stat(text), Some((b'S', 330)));
        assert_eq!(parse_stat(b"7 (x) R 1"), None);
        assert!(state(own_id()).is_some());
        let mut path = [0; 32];
        assert_eq!(stat_path(10, &mut path), Some(c"/proc/10/stat"));
        assert_eq!(hexadecimal(b"7fA0"), Some(0x7fa0));
        assert_eq!(hexadecimal(b"x"), None);
    }

    #[test]
    fn a_pipe_tells_of_its_reader_and_of_its_end() {
        let (read, write) = pipe().unwrap();
        let mut into = [0; 8];
        assert_eq!(receive(read, &mut into, Duration::ZERO), None);
        assert!(send(write, b"word") && !is_unread(write));
        assert_eq!(receive(read, &mut into, Duration::from_secs(1)), Some(4));
        close(read);
        assert!(is_unread(write));
        close(write);
    }
}
