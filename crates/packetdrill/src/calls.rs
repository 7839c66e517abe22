//! The calls of the system that programs make.

use crate::ScriptProblem;
use crate::host::{File, PlayedLink, ScriptHost, Socket};
use crate::script::{Call, ScriptValue};
use firstlight_transport::{ConnectionFailure, Send, State};
use firstlight_units::{Bytes, Span};

/// The least buffer for what is sent, in bytes.
const LEAST_SEND_BUFFER: u64 = 4608;

/// The result of a call: a number, and the name of an error with -1.
pub(crate) type Returned = (i64, Option<&'static str>);

/// The outcome of a call.
pub(crate) enum Answer {
    Now(i64, Option<&'static str>),
    /// The call blocks.
    Later(Pending),
}

/// A call that blocks.
#[derive(Clone, Debug)]
pub(crate) enum Pending {
    /// The script says which file descriptor it is to be.
    Accept {
        fd: i64,
        result: Option<i64>,
    },
    Connect {
        fd: i64,
    },
    Read {
        fd: i64,
        bytes: u64,
    },
    Write {
        fd: i64,
        bytes: u64,
    },
}

type Result<T> = std::result::Result<T, ScriptProblem>;

fn now(result: i64) -> Result<Answer> {
    Ok(Answer::Now(result, None))
}

fn error(name: &'static str) -> Result<Answer> {
    Ok(Answer::Now(-1, Some(name)))
}

/// The player fills in the line.
fn unsupported<T>(what: impl Into<String>) -> Result<T> {
    Err(ScriptProblem::unsupported(0, what))
}

/// The value that a call found in the kernel, and the expected value.
fn found(what: &str, found: i64, expected: Option<i64>) -> Result<Answer> {
    if Some(found) == expected {
        return now(0);
    }
    Err(ScriptProblem::differs(0, format!("{what}: {found}, expected {expected:?}")))
}

impl ScriptHost {
    /// Makes a call. `Err` names the part that the player does not know.
    pub(crate) fn call(&mut self, call: &Call) -> Result<Answer> {
        let arg = |i: usize| call.args.get(i).unwrap_or(&ScriptValue::Any);
        let number = |i: usize| arg(i).number().unwrap_or(0);
        let fd = number(0);
        let answer = match &*call.name {
            "socket" => {
                let nonblocking = arg(1).has("SOCK_NONBLOCK");
                self.make(File::Socket(Socket { nonblocking, ..Socket::default() }), &call.result)
            }
            "open" => self.make(File::Zeros, &call.result),
            "pipe" => self.pipe(arg(0)),
            "bind" => now(0),
            "listen" => self.listen(fd),
            "accept" => self.block(Pending::Accept { fd, result: call.result.number() }, fd),
            "connect" => self.connect(fd),
            "close" => self.close(fd),
            "shutdown" => self.shutdown(fd, arg(1).name()),
            "fcntl" => self.fcntl(fd, arg(1).name(), arg(2)),
            "ioctl" => self.ioctl(fd, arg(1).name(), arg(2)),
            "setsockopt" => self.set_option(fd, arg(2).name(), arg(3)),
            "getsockopt" => self.get_option(fd, arg(2).name(), arg(3)),
            "write" => self.write(fd, arg(1), number(2) as u64, &ScriptValue::Any),
            "send" | "sendto" => self.write(fd, arg(1), number(2) as u64, arg(3)),
            "sendmsg" => self.write(fd, &ScriptValue::Any, message_length(arg(1)), arg(2)),
            "sendfile" => self.write(fd, &ScriptValue::Any, number(3) as u64, &ScriptValue::Any),
            "read" | "recv" | "recvfrom" => self.read(fd, arg(1), number(2) as u64),
            "recvmsg" => self.receive_message(fd, arg(1), arg(2)),
            name => unsupported(format!("calls of {name}")),
        };
        self.pump();
        answer
    }

    fn socket_at(&mut self, fd: i64) -> Result<&mut Socket> {
        self.socket(fd).map_or_else(|| unsupported("calls on files of this kind"), Ok)
    }

    fn link_at(&mut self, fd: i64) -> Result<&mut PlayedLink> {
        self.link(fd).map_or_else(|| unsupported("calls on sockets without a connection"), Ok)
    }

    fn make(&mut self, file: File, result: &ScriptValue) -> Result<Answer> {
        let fd = self.free_fd(result.number());
        self.files.insert(fd, file);
        now(fd)
    }

    fn pipe(&mut self, ends: &ScriptValue) -> Result<Answer> {
        for end in ends.items().iter().filter_map(ScriptValue::number) {
            self.files.insert(end, File::Zeros);
        }
        now(0)
    }

    fn listen(&mut self, fd: i64) -> Result<Answer> {
        self.current = None;
        self.socket_at(fd)?.listening = true;
        now(0)
    }

    /// A call returns if it can; else it blocks, or fails where the socket is not to block.
    fn block(&mut self, pending: Pending, fd: i64) -> Result<Answer> {
        if let Some((result, errno)) = self.retry(&pending) {
            return Ok(Answer::Now(result, errno));
        }
        let nonblocking = self.socket_at(fd)?.nonblocking;
        if nonblocking { error("EAGAIN") } else { Ok(Answer::Later(pending)) }
    }

    /// The result of a call that blocks; `None` while it blocks.
    pub(crate) fn retry(&mut self, pending: &Pending) -> Option<Returned> {
        match *pending {
            Pending::Accept { fd, result } => self.accept(fd, result).map(|fd| (fd, None)),
            Pending::Connect { fd } => {
                let connection = &self.link(fd)?.connection;
                match (connection.state(), connection.failure()) {
                    (State::SynSent | State::SynReceived, _) => None,
                    (_, Some(failure)) => Some((-1, Some(errno(failure)))),
                    _ => Some((0, None)),
                }
            }
            Pending::Read { fd, bytes } => self.try_read(fd, bytes),
            Pending::Write { fd, bytes } => {
                let connection = &self.link(fd)?.connection;
                (connection.unbuffered() == 0).then_some((bytes as i64, None))
            }
        }
    }

    fn accept(&mut self, listener: i64, result: Option<i64>) -> Option<i64> {
        let ready = |link: &PlayedLink| link.listener == Some(listener) && link.connection.is_established();
        let link = self.links.iter().position(ready)?;
        let options = self.socket(listener)?.options.clone();
        let fd = self.free_fd(result);
        self.links[link].listener = None;
        self.links[link].connection.set_accepted(true);
        self.files.insert(fd, File::Socket(Socket { link: Some(link), options, ..Socket::default() }));
        Some(fd)
    }

    fn connect(&mut self, fd: i64) -> Result<Answer> {
        let options = self.socket_at(fd)?.options.clone();
        let link = self.open(&options, None);
        let now = self.now;
        self.links[link].connection.connect(now);
        self.links[link].connection.set_accepted(true);
        self.apply(link, &options)?;
        let socket = self.socket(fd).expect("it is a socket");
        socket.link = Some(link);
        if socket.nonblocking { error("EINPROGRESS") } else { Ok(Answer::Later(Pending::Connect { fd })) }
    }

    fn close(&mut self, fd: i64) -> Result<Answer> {
        let now_ = self.now;
        if let Some(link) = self.link(fd) {
            link.connection.close(now_);
        }
        match self.files.remove(&fd) {
            Some(_) => now(0),
            None => error("EBADF"),
        }
    }

    fn shutdown(&mut self, fd: i64, how: &str) -> Result<Answer> {
        let now_ = self.now;
        if how != "SHUT_WR" {
            self.socket_at(fd)?.read_shut = true;
        }
        let link = self.link_at(fd)?;
        if how != "SHUT_RD" {
            link.connection.shutdown(now_);
        }
        now(0)
    }

    fn fcntl(&mut self, fd: i64, command: &str, flags: &ScriptValue) -> Result<Answer> {
        let socket = self.socket_at(fd)?;
        match command {
            "F_GETFL" => now(if socket.nonblocking { 0x802 } else { 2 }),
            "F_SETFL" => {
                socket.nonblocking = flags.has("O_NONBLOCK");
                now(0)
            }
            _ => unsupported(format!("fcntl commands called {command}")),
        }
    }

    fn ioctl(&mut self, fd: i64, command: &str, expected: &ScriptValue) -> Result<Answer> {
        let link = self.link_at(fd)?;
        let readable = link.connection.readable();
        match command {
            "SIOCINQ" => found("bytes to read", readable as i64, expected.only()),
            _ => unsupported(format!("ioctl commands called {command}")),
        }
    }

    fn set_option(&mut self, fd: i64, name: &str, value: &ScriptValue) -> Result<Answer> {
        let number = value.only().unwrap_or(0);
        if name == "SO_TIMESTAMPING" {
            return self.ask_for_stamps(fd, value);
        }
        let socket = self.socket_at(fd)?;
        if name == "TCP_INQ" {
            socket.tells_readable = number != 0;
            return now(0);
        }
        socket.options.push((name.to_owned(), number));
        match socket.link {
            Some(link) => self.apply(link, &[(name.to_owned(), number)])?,
            None => check_option(name)?,
        }
        now(0)
    }

    /// Sets options of a connection.
    pub(crate) fn apply(&mut self, link: usize, options: &[(String, i64)]) -> Result<()> {
        for (name, value) in options {
            check_option(name)?;
            let connection = &mut self.links[link].connection;
            match &**name {
                "TCP_NODELAY" => connection.set_nodelay(*value != 0),
                "TCP_CORK" => connection.set_cork(*value != 0),
                "TCP_USER_TIMEOUT" => connection.set_user_timeout((*value > 0).then_some(Span::from_ms(*value as u64))),
                // The kernel doubles the size that a program sets, for its own bookkeeping.
                "SO_SNDBUF" => connection.set_send_buffer(Bytes::new((2 * *value as u64).max(LEAST_SEND_BUFFER))),
                "SO_RCVBUF" => connection.set_receive_buffer(Bytes::new(2 * *value as u64)),
                "TCP_NOTSENT_LOWAT" => {
                    connection.set_unsent_limit(Bytes::new(u64::from(*value as u32)));
                    self.links[link].unsent_limit = Some(*value);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn get_option(&mut self, fd: i64, name: &str, expected: &ScriptValue) -> Result<Answer> {
        let default = self.sysctls.unsent_limit();
        let at = self.now;
        let link = self.link_at(fd)?;
        let value = match name {
            "SO_ERROR" => i64::from(link.connection.failure().is_some()),
            "SO_SNDBUF" => link.connection.send_buffer().get() as i64,
            "TCP_NOTSENT_LOWAT" => link.unsent_limit.unwrap_or(default),
            "TCP_MAXSEG" => i64::from(link.connection.info(at).mss),
            _ => return unsupported(format!("socket options called {name}")),
        };
        found(name, value, expected.only())
    }

    fn ask_for_stamps(&mut self, fd: i64, kinds: &ScriptValue) -> Result<Answer> {
        let link = self.link_at(fd)?;
        let [kinds] = kinds.items() else { return unsupported("timestamps of this kind") };
        let known = [
            ("SOF_TIMESTAMPING_TX_SCHED", "SCM_TSTAMP_SCHED"),
            ("SOF_TIMESTAMPING_TX_SOFTWARE", "SCM_TSTAMP_SND"),
            ("SOF_TIMESTAMPING_TX_ACK", "SCM_TSTAMP_ACK"),
        ];
        link.stamps.kinds = known.iter().filter(|(flag, _)| kinds.has(flag)).map(|(_, kind)| *kind).collect();
        link.stamps.base = link.stamps.written;
        now(0)
    }

    fn write(&mut self, fd: i64, buffer: &ScriptValue, bytes: u64, flags: &ScriptValue) -> Result<Answer> {
        if buffer.name() == "NULL" {
            return error("EFAULT");
        }
        let now_ = self.now;
        let nonblocking = self.socket_at(fd)?.nonblocking || flags.has("MSG_DONTWAIT");
        let link = self.link_at(fd)?;
        let connection = &mut link.connection;
        if let Some(failure) = connection.take_failure() {
            return error(errno(failure));
        }
        if !connection.state().may_write() {
            return error("EPIPE");
        }
        connection.send(bytes, Send { more: flags.has("MSG_MORE"), end_of_record: flags.has("MSG_EOR") }, now_);
        if !nonblocking {
            link.stamps.on_write(bytes);
            return self.block(Pending::Write { fd, bytes }, fd);
        }
        self.pump();
        let link = self.link(fd).expect("it is connected");
        let written = bytes - link.connection.take_back();
        link.stamps.on_write(written);
        if written == 0 && bytes > 0 { error("EAGAIN") } else { now(written as i64) }
    }

    fn read(&mut self, fd: i64, buffer: &ScriptValue, bytes: u64) -> Result<Answer> {
        if buffer.name() == "NULL" {
            return error("EFAULT");
        }
        if self.socket_at(fd)?.listening {
            return error("ENOTCONN");
        }
        self.block(Pending::Read { fd, bytes }, fd)
    }

    fn try_read(&mut self, fd: i64, bytes: u64) -> Option<Returned> {
        let read_shut = self.socket(fd)?.read_shut;
        let connection = &mut self.link(fd)?.connection;
        let read = connection.read(bytes);
        if read > 0 {
            self.pump();
            return Some((read as i64, None));
        }
        if let Some(failure) = connection.take_failure() {
            return Some((-1, Some(errno(failure))));
        }
        (connection.is_at_end() || read_shut).then_some((0, None))
    }

    fn receive_message(&mut self, fd: i64, message: &ScriptValue, flags: &ScriptValue) -> Result<Answer> {
        if flags.has("MSG_ERRQUEUE") {
            return self.read_stamp(fd, message);
        }
        let answer = self.read(fd, &ScriptValue::Any, message_length(message))?;
        let link = self.link_at(fd)?;
        let readable = match link.connection.readable() {
            // The end of the stream counts as a byte.
            0 => u64::from(link.connection.is_at_end()),
            readable => readable,
        };
        for control in message.field("msg_control").map(ScriptValue::items).unwrap_or_default() {
            let with_bytes = control.field("cmsg_type").is_some_and(|kind| kind.has("TCP_CM_INQ"));
            let expected = control.field("cmsg_data").and_then(ScriptValue::number);
            if !with_bytes {
                return unsupported("control messages of this kind");
            }
            found("bytes to read", readable as i64, expected)?;
        }
        Ok(answer)
    }

    /// A timestamp of what was sent, from the queue of errors.
    fn read_stamp(&mut self, fd: i64, message: &ScriptValue) -> Result<Answer> {
        let start = self.start;
        let link = self.link_at(fd)?;
        let Some((kind, byte, at)) = link.stamps.reported.pop_front() else { return error("EAGAIN") };
        let controls = message.field("msg_control").map(ScriptValue::items).unwrap_or_default();
        let data = |i: usize| controls.get(i).and_then(|control| control.field("cmsg_data"));
        let nested = |data: Option<&ScriptValue>, name: &str| data.and_then(|data| data.field(name)).cloned();
        let number = |i: usize, name: &str| nested(data(i), name).and_then(|value| value.number());
        let expected = Span::from_secs(number(0, "scm_sec").unwrap_or(0) as u64)
            + Span::from_ns(number(0, "scm_nsec").unwrap_or(0) as u64);
        let found = at.saturating_since(start);
        let off = found.saturating_sub(expected).max(expected.saturating_sub(found));
        let named = nested(data(1), "ee_info").is_some_and(|info| info.has(kind));
        if !named || number(1, "ee_data") != Some(byte as i64) || off > Span::from_ms(4) {
            return Err(ScriptProblem::differs(0, format!("there is a {kind} of byte {byte} after {found}")));
        }
        now(0)
    }
}

/// Bytes of all parts of a message.
fn message_length(message: &ScriptValue) -> u64 {
    let parts = message.field("msg_iov").map(ScriptValue::items).unwrap_or_default();
    let length = |part: &ScriptValue| match part {
        ScriptValue::Record(fields) => fields.get(1).and_then(|(_, length)| length.number()).unwrap_or(0),
        _ => 0,
    };
    parts.iter().map(length).sum::<i64>() as u64
}

fn errno(failure: ConnectionFailure) -> &'static str {
    match failure {
        ConnectionFailure::Refused => "ECONNREFUSED",
        ConnectionFailure::Reset => "ECONNRESET",
        ConnectionFailure::TimedOut => "ETIMEDOUT",
    }
}

/// `Err` for an option of sockets that is not known.
fn check_option(name: &str) -> Result<()> {
    const KNOWN: &[&str] = &[
        "SO_REUSEADDR",
        "SO_SNDBUF",
        "SO_RCVBUF",
        "SO_ZEROCOPY",
        "TCP_NODELAY",
        "TCP_CORK",
        "TCP_USER_TIMEOUT",
        "TCP_NOTSENT_LOWAT",
        "TCP_MAXSEG",
        "IP_TOS",
        "IP_MTU_DISCOVER",
        "IP_FREEBIND",
    ];
    if KNOWN.contains(&name) { Ok(()) } else { unsupported(format!("socket options called {name}")) }
}
