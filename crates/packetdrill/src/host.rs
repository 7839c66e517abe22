//! A host in virtual time: connections, what they have sent, and their timers.

use crate::script::PacketSpec;
use crate::sysctl::Sysctls;
use crate::translate::Translation;
use firstlight_net::{HostId, Packet, TcpSegment};
use firstlight_transport::{Connection, Endpoint, State, reset_for};
use firstlight_units::Time;
use std::collections::{BTreeMap, VecDeque};

/// The port to which scripts connect, and on which they listen.
const PORT: u16 = 8080;
/// The first port of peers that connect.
const FIRST_PEER_PORT: u16 = 50_000;

/// The object of a file descriptor.
#[derive(Debug)]
pub(crate) enum File {
    Socket(Socket),
    /// A file of zeros, or one end of a pipe.
    Zeros,
}

/// A socket.
#[derive(Clone, Debug, Default)]
pub(crate) struct Socket {
    /// The descriptor's connection, by place.
    pub(crate) link: Option<usize>,
    pub(crate) listening: bool,
    pub(crate) nonblocking: bool,
    /// The program asks for how many bytes are readable with each message (`TCP_INQ`).
    pub(crate) tells_readable: bool,
    /// The program does not read any more.
    pub(crate) read_shut: bool,
    /// Options that were set before there was a connection.
    pub(crate) options: Vec<(String, i64)>,
}

/// A connection as the script and the endpoint see it.
#[derive(Debug)]
pub(crate) struct PlayedLink {
    pub(crate) connection: Connection,
    pub(crate) translation: Translation,
    /// The listening socket that has not handed it to the program yet.
    pub(crate) listener: Option<i64>,
    /// The value that the program has set with `TCP_NOTSENT_LOWAT`.
    pub(crate) unsent_limit: Option<i64>,
    pub(crate) stamps: SegmentStamps,
}

/// Timestamps of what a program sends (`SO_TIMESTAMPING`).
#[derive(Debug, Default)]
pub(crate) struct SegmentStamps {
    /// Kinds that were asked for.
    pub(crate) kinds: Vec<&'static str>,
    /// Stream offset from which bytes are numbered.
    pub(crate) base: u64,
    /// Bytes that were written.
    pub(crate) written: u64,
    /// Last bytes of writes that were not sent yet.
    pub(crate) unsent: VecDeque<u64>,
    /// Last bytes of writes that are not acknowledged yet.
    pub(crate) unacked: VecDeque<u64>,
    /// Timestamps that the program can read: the kind, the byte, and the time.
    pub(crate) reported: VecDeque<(&'static str, u64, Time)>,
}

/// A packet that the endpoint has sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentSegment {
    pub(crate) at: Time,
    pub(crate) packet: Packet,
    pub(crate) link: usize,
}

impl SentSegment {
    pub(crate) fn segment(&self) -> TcpSegment<'_> {
        self.packet.tcp().expect("an endpoint sends segments")
    }
}

/// A host.
#[derive(Debug)]
pub(crate) struct ScriptHost {
    /// When the script began.
    pub(crate) start: Time,
    pub(crate) now: Time,
    pub(crate) sysctls: Sysctls,
    pub(crate) files: BTreeMap<i64, File>,
    pub(crate) links: Vec<PlayedLink>,
    /// The connection that packets of the script belong to.
    pub(crate) current: Option<usize>,
    /// Packets that were sent and have not been compared yet.
    pub(crate) sent: VecDeque<SentSegment>,
}

impl ScriptHost {
    pub(crate) fn new(now: Time) -> Self {
        ScriptHost {
            start: now,
            now,
            sysctls: Sysctls::default(),
            files: BTreeMap::new(),
            links: vec![],
            current: None,
            sent: VecDeque::new(),
        }
    }

    /// A new connection for a socket with these options; its place.
    pub(crate) fn open(&mut self, options: &[(String, i64)], listener: Option<i64>) -> usize {
        let number = self.links.len() as u32;
        let peer_port = if listener.is_some() { FIRST_PEER_PORT + number as u16 } else { PORT };
        let own_port = if listener.is_some() { PORT } else { FIRST_PEER_PORT + number as u16 };
        let local = Endpoint { host: HostId(0), port: own_port };
        let remote = Endpoint { host: HostId(1), port: peer_port };
        let isns = [number.wrapping_mul(7_000_001).wrapping_add(4_000_000_000), number * 1_000_003 + 17];
        let config = self.sysctls.config(options);
        let mut connection = Connection::new(&config, &self.sysctls.controller(), local, remote, isns[0]);
        connection.read_by_calls();
        let translation = Translation::new(local, remote, isns[0], isns[1]);
        connection.set_accepted(listener.is_none());
        let stamps = SegmentStamps::default();
        self.links.push(PlayedLink { connection, translation, listener, unsent_limit: None, stamps });
        self.current = Some(self.links.len() - 1);
        self.links.len() - 1
    }

    fn listener(&self) -> Option<(i64, Vec<(String, i64)>)> {
        self.files.iter().rev().find_map(|(&fd, file)| match file {
            File::Socket(socket) if socket.listening => Some((fd, socket.options.clone())),
            _ => None,
        })
    }

    /// The peer sends a packet. `Err` names an option that the endpoint does not know.
    pub(crate) fn receive(&mut self, spec: &PacketSpec) -> Result<(), String> {
        if self.current.is_none() {
            let (fd, options) = self.listener().unwrap_or_default();
            let link = self.open(&options, Some(fd));
            self.apply(link, &options).map_err(|problem| problem.to_string())?;
        }
        let link = self.current.expect("there is one");
        let packet = self.links[link].translation.inbound(spec)?;
        let there = &mut self.links[link];
        let refused = there.listener.is_some_and(|fd| !self.files.contains_key(&fd));
        if there.connection.state() == State::Closed || refused {
            let reset = reset_for(&packet).map(|packet| SentSegment { at: self.now, packet, link });
            self.sent.extend(reset);
            return Ok(());
        }
        there.connection.on_segment(packet.tcp().expect("it is a segment"), self.now);
        self.pump();
        Ok(())
    }

    /// Makes every connection send the packets that it has to send.
    pub(crate) fn pump(&mut self) {
        let mut packet = Packet::default();
        for (number, link) in self.links.iter_mut().enumerate() {
            while link.connection.has_output() && link.connection.transmit(self.now, &mut packet) {
                self.sent.push_back(SentSegment { at: self.now, packet, link: number });
                let sent = packet.tcp().expect("an endpoint sends segments");
                let end = sent.seq().wrapping_sub(link.translation.local_isn).wrapping_add(sent.payload());
                link.stamps.on_sent(end, self.now);
            }
            link.stamps.on_acked(link.connection.bytes_acked(), self.now);
        }
    }

    /// When a timer expires next.
    pub(crate) fn next(&mut self) -> Option<Time> {
        self.links.iter_mut().filter_map(|link| link.connection.poll_timeout()).min()
    }

    /// Lets the timers expire that are due next, up to `until`; false when there are none, and then it is `until`.
    pub(crate) fn step(&mut self, until: Time) -> bool {
        let Some(at) = self.next().filter(|at| *at <= until) else {
            self.now = self.now.max(until);
            return false;
        };
        self.now = self.now.max(at);
        for link in &mut self.links {
            if link.connection.poll_timeout().is_some_and(|due| due <= at) {
                link.connection.on_timeout(self.now);
            }
        }
        self.pump();
        true
    }

    pub(crate) fn socket(&mut self, fd: i64) -> Option<&mut Socket> {
        match self.files.get_mut(&fd)? {
            File::Socket(socket) => Some(socket),
            _ => None,
        }
    }

    /// The connection of a socket.
    pub(crate) fn link(&mut self, fd: i64) -> Option<&mut PlayedLink> {
        let link = self.socket(fd)?.link?;
        self.links.get_mut(link)
    }

    /// The file descriptor that the script expects, or else the least that is free.
    pub(crate) fn free_fd(&self, expected: Option<i64>) -> i64 {
        let free = |fd: &i64| *fd > 2 && !self.files.contains_key(fd);
        expected.filter(free).or_else(|| (3..).find(free)).expect("there are endless numbers")
    }
}

impl SegmentStamps {
    /// A write ended at this byte of the stream.
    pub(crate) fn on_write(&mut self, bytes: u64) {
        self.written += bytes;
        if !self.kinds.is_empty() && bytes > 0 {
            self.unsent.push_back(self.written);
            self.unacked.push_back(self.written);
        }
    }

    /// A packet went out whose last byte is before sequence number `end` of the script.
    fn on_sent(&mut self, end: u32, now: Time) {
        while self.unsent.front().is_some_and(|byte| *byte < u64::from(end)) {
            let byte = self.unsent.pop_front().expect("there is one");
            for kind in ["SCM_TSTAMP_SCHED", "SCM_TSTAMP_SND"] {
                self.report(kind, byte, now);
            }
        }
    }

    fn on_acked(&mut self, acked: u64, now: Time) {
        while self.unacked.front().is_some_and(|byte| *byte <= acked) {
            let byte = self.unacked.pop_front().expect("there is one");
            self.report("SCM_TSTAMP_ACK", byte, now);
        }
    }

    fn report(&mut self, kind: &'static str, byte: u64, now: Time) {
        if self.kinds.contains(&kind) {
            self.reported.push_back((kind, byte - 1 - self.base, now));
        }
    }
}
