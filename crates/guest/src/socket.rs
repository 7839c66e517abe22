//! Calls on TCP sockets that the standard library lacks.

use crate::failure::{Context, GuestFailure};
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, listen, setsockopt, sockopt};
use std::fs;
use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Room for a `struct tcp_info` of any kernel, in bytes.
const INFO_ROOM: usize = 512;

/// Makes a TCP socket with this congestion control, bound to this address, in the current network namespace. Its
/// packets have this traffic class, the upper three bits of DSCP (RFC 2474, section 4.2.2).
pub fn bound(address: SocketAddrV4, cc: &str, class: u8) -> Result<OwnedFd, GuestFailure> {
    let socket = nix::sys::socket::socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)
        .context(|| "cannot make a socket".into())?;
    setsockopt(&socket, sockopt::TcpCongestion, &cc.into()).context(|| {
        let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
        format!("this kernel has no congestion control '{cc}': choose one of {}", known.trim())
    })?;
    classify(&socket, class)?;
    bind(socket.as_raw_fd(), &SockaddrIn::from(address)).context(|| format!("cannot bind to the address {address}"))?;
    Ok(socket)
}

/// Makes a UDP socket as [`bound`] makes one of TCP.
pub fn datagrams(address: SocketAddrV4, class: u8) -> Result<UdpSocket, GuestFailure> {
    let socket = UdpSocket::bind(address).context(|| format!("cannot bind to the address {address}"))?;
    classify(&socket, class)?;
    Ok(socket)
}

fn classify(socket: &impl AsFd, class: u8) -> Result<(), GuestFailure> {
    if class == 0 {
        return Ok(());
    }
    setsockopt(socket, sockopt::Ipv4Tos, &(i32::from(class) << 5))
        .context(|| format!("cannot set the traffic class {class}"))
}

/// Listens for one connection.
pub fn listen_for_one(socket: &OwnedFd) -> Result<(), GuestFailure> {
    listen(socket, Backlog::new(1).expect("one is few")).context(|| "cannot listen".into())
}

/// Receives `most` bytes and discards them: `all`, or all up to the connection's end, so that the kernel proceeds as
/// for a reader that always waits for more; otherwise what there is as soon as there is some. Nothing is copied.
/// Returns how many bytes arrived.
#[allow(unsafe_code)]
pub fn discard(socket: &impl AsRawFd, most: usize, all: bool) -> io::Result<usize> {
    let flags = libc::MSG_TRUNC | if all { libc::MSG_WAITALL } else { 0 };
    // SAFETY: with MSG_TRUNC a TCP socket writes nothing to the buffer (tcp(7)), so that it may be null.
    let taken = unsafe { libc::recv(socket.as_raw_fd(), std::ptr::null_mut(), most, flags) };
    usize::try_from(taken).map_err(|_| io::Error::last_os_error())
}

/// Lets the connection delay its ACKs as if its program answered (TCP_QUICKACK off).
#[allow(unsafe_code)]
pub fn delay_acks(socket: &impl AsRawFd) -> io::Result<()> {
    let off: libc::c_int = 0;
    let length = size_of_val(&off) as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes, which `off` has.
    let failed = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_QUICKACK, (&raw const off).cast(), length)
    };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Wakes readers of the socket once this number of bytes has arrived (SO_RCVLOWAT).
#[allow(unsafe_code)]
pub fn wake_at(socket: &impl AsRawFd, bytes: i32) -> io::Result<()> {
    let length = size_of_val(&bytes) as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes, which `bytes` has.
    let failed = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVLOWAT, (&raw const bytes).cast(), length)
    };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The connection's `struct tcp_info`, as long as the kernel gives it.
#[allow(unsafe_code)]
pub fn info(socket: &impl AsRawFd) -> io::Result<Vec<u8>> {
    let mut info = vec![0u8; INFO_ROOM];
    let mut length = INFO_ROOM as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, which `info` has.
    let failed = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, info.as_mut_ptr().cast(), &mut length)
    };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    info.truncate(length as usize);
    Ok(info)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    #[test]
    #[allow(unsafe_code)]
    fn discarded_bytes_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let sender = std::thread::spawn(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            (0..10).for_each(|_| stream.write_all(&[7; 100_000]).unwrap());
        });
        let (stream, _) = listener.accept().unwrap();
        wake_at(&stream, 32_768).unwrap();
        let (mut mark, mut length) = (0_i32, size_of::<i32>() as libc::socklen_t);
        // SAFETY: the kernel writes at most `length` bytes, which `mark` has.
        let failed = unsafe {
            let (level, option) = (libc::SOL_SOCKET, libc::SO_RCVLOWAT);
            libc::getsockopt(stream.as_raw_fd(), level, option, (&raw mut mark).cast(), &mut length)
        };
        assert_eq!((failed, mark), (0, 32_768));
        assert_eq!(discard(&stream, 300_000, true).unwrap(), 300_000);
        wake_at(&stream, 1).unwrap();
        assert_eq!(discard(&stream, 1 << 30, true).unwrap(), 700_000);
        assert_eq!(discard(&stream, 1 << 30, true).unwrap(), 0);
        sender.join().unwrap();
        let state = info(&stream).unwrap();
        assert!(state.len() > 100, "{}", state.len());
        assert_eq!(state[0], 8, "CLOSE_WAIT");
    }

    #[test]
    fn an_unknown_congestion_control_is_named() {
        let error = bound("127.0.0.1:0".parse().unwrap(), "rno", 0).unwrap_err().to_string();
        assert!(
            error.starts_with("this kernel has no congestion control 'rno': choose one of ") && error.contains("reno"),
            "{error}"
        );
    }
}
