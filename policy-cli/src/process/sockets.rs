//! The addresses on which a process listens: `/proc/PID/net/tcp`, `tcp6`, and its open sockets.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// `TCP_LISTEN` in the column `st`.
const LISTEN: &str = "0A";

/// The inode of a socket, if that is where a link of `/proc/PID/fd` points to.
pub(crate) fn socket_inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

/// The listening addresses in the text of `/proc/PID/net/tcp` or `tcp6`, with their inodes.
pub(crate) fn listening(text: &str) -> impl Iterator<Item = (SocketAddr, u64)> + '_ {
    listening_of_users(text).map(|(address, inode, _)| (address, inode))
}

/// As [`listening`], with the user of each socket.
pub(crate) fn listening_of_users(text: &str) -> impl Iterator<Item = (SocketAddr, u64, u32)> + '_ {
    text.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_whitespace();
        let local = fields.nth(1)?;
        let state = fields.nth(1)?;
        let user = fields.nth(3)?.parse().ok()?;
        let inode = fields.nth(1)?.parse().ok()?;
        (state == LISTEN).then_some(())?;
        Some((address(local)?, inode, user))
    })
}

/// The addresses whose sockets are among `inodes`.
pub(crate) fn owned(text: &str, inodes: &BTreeSet<u64>) -> Vec<SocketAddr> {
    listening(text)
        .filter(|(_, inode)| inodes.contains(inode))
        .map(|(address, _)| address)
        .collect()
}

/// `0100007F:24F8`: words of 32 bits in the machine's byte order, then the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        let digits = host.get(at * 8..at * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    let ip: IpAddr = match host.len() {
        8 => Ipv4Addr::from(word(0)?).into(),
        32 => {
            let mut bytes = [0; 16];
            for (at, four) in bytes.chunks_exact_mut(4).enumerate() {
                four.copy_from_slice(&word(at)?);
            }
            Ipv6Addr::from(bytes).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use super::*;

    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
        0: 0100007F:24F8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 21573 1 0 100 0 0 10 0\n   \
        1: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000   998        0 20001 1 0 100 0 0 10 0\n   \
        2: 0100007F:24F8 0100007F:B1C2 01 00000000:00000000 00:00000000 00000000     0        0 21573 1 0 20 4 30 10 -1\n";
    const TCP6: &str = "  sl  local_address remote_address st tx_queue rx_queue tr tm->when retrnsmt uid timeout inode\n   \
        0: 00000000000000000000000001000000:24F8 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 7 1\n   \
        1: 0000000000000000FFFF00000100007F:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 8 1\n";

    #[test]
    fn only_what_listens_and_is_owned() {
        assert_eq!(
            owned(TCP, &[21573].into()),
            ["127.0.0.1:9464".parse().unwrap()]
        );
        assert_eq!(owned(TCP, &[1].into()), []);
        assert_eq!(listening(TCP).count(), 2);
        let users: Vec<u32> = listening_of_users(TCP).map(|(_, _, user)| user).collect();
        assert_eq!(users, [0, 998]);
        let six: Vec<SocketAddr> = listening(TCP6).map(|(address, _)| address).collect();
        assert_eq!(
            six,
            [
                "[::1]:9464".parse().unwrap(),
                "127.0.0.1:8080".parse().unwrap()
            ]
        );
    }

    #[test]
    fn nonsense_is_left_out() {
        assert_eq!(
            listening("head\n x y\n 0: ZZ:24F8 a 0A 0 0 0 0 0 1\n\n").count(),
            0
        );
        assert_eq!(socket_inode("socket:[42]"), Some(42));
        assert_eq!(socket_inode("/dev/null"), None);
        assert_eq!(socket_inode("socket:[x]"), None);
    }
}
