//! Programs' writes, as LibADU counts them: the engine reads the table that LibADU shares with it
//! (`linux/libadu/adu.h`).
//!
//! The library counts a write before the kernel has its bytes, and the engine looks before it takes packets in: so the
//! control loop knows of bytes before any of them arrives. The packets show what the library cannot know: where a
//! connection's sequence numbers begin (SYN) and end (FIN), and that the connection is over (RST).

use crate::error::Error;
use firstlight_linux::Context;
use memmap2::{MmapMut, MmapOptions};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::net::SocketAddrV4;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const MAGIC: u32 = 0x3155_4441;
const ENTRIES: u32 = 4096;
const GIVEN_BACK: u64 = u64::MAX;
/// The head and each entry are a cache line.
const LINE: usize = 64;
// Offsets of the head's fields.
const CHANGES: usize = 8;
const MADE: usize = 16;
const MISSED: usize = 24;
// Offsets of an entry's fields.
const COOKIE: usize = 0;
const READY: usize = 8;
const FROM: usize = 12;
const TO: usize = 16;
const FROM_PORT: usize = 20;
const TO_PORT: usize = 22;
const BEFORE: usize = 24;
const WRITTEN: usize = 32;

/// TCP, in an IP header.
const TCP: u8 = 6;
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// Receives reports of programs' writes.
pub trait Listener {
    /// A program has written `bytes` more to a connection (sender, receiver); a negative number is what it wrote less
    /// than reported. `sequence` is the sequence number before the first of them.
    fn wrote(&mut self, ends: [SocketAddrV4; 2], sequence: u32, bytes: i64);

    /// A connection is over.
    fn closed(&mut self, ends: [SocketAddrV4; 2]);
}

type ConnectionEnds = [SocketAddrV4; 2];

/// One direction of a connection, as its packets show it.
#[derive(Clone, Copy, Debug)]
struct Course {
    /// The sequence number of the SYN.
    start: u32,
    /// Whether this side accepted the connection. The kernel does not count its SYN then.
    accepted: bool,
    ended: bool,
}

/// An entry of the table whose writes are reported.
#[derive(Clone, Copy, Debug)]
struct Known {
    entry: usize,
    ends: ConnectionEnds,
    /// Bytes reported so far.
    reported: i64,
}

/// The table, and the parts of it that were reported.
pub struct Adu {
    table: MmapMut,
    changes: u64,
    made: u64,
    known: Vec<Known>,
    courses: BTreeMap<ConnectionEnds, Course>,
}

impl Adu {
    /// Makes an empty table.
    pub fn make(path: &Path) -> Result<Self, Error> {
        let what = || format!("cannot make {}", path.display());
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path).context(what)?;
        let length = LINE * (ENTRIES as usize + 1);
        file.set_len(length as u64).context(what)?;
        // SAFETY: the file is this run's; programs change what lies in it by atomic operations, as is done here.
        #[allow(unsafe_code)]
        let mut table = unsafe { MmapOptions::new().len(length).map_mut(&file) }.context(what)?;
        table[..4].copy_from_slice(&MAGIC.to_ne_bytes());
        table[4..8].copy_from_slice(&ENTRIES.to_ne_bytes());
        Ok(Adu { table, changes: 0, made: 0, known: vec![], courses: BTreeMap::new() })
    }

    /// Fails when a program wrote to a connection for which the table had no room: its bytes are not counted.
    ///
    /// # Errors
    /// When that has happened.
    pub fn check(&self) -> Result<(), Error> {
        match self.number(MISSED).load(Ordering::Relaxed) {
            0 => Ok(()),
            _ => Err(Error::Machine(format!(
                "programs wrote to more than {ENTRIES} connections at once, which LibADU cannot count: use fewer, or \
                 control.demand = \"voq\""
            ))),
        }
    }

    /// Reports the writes since the last call. It is called before each packet that comes from a host.
    #[inline]
    pub fn report(&mut self, listener: &mut impl Listener) {
        let changes = self.number(CHANGES).load(Ordering::Acquire);
        if changes != self.changes {
            self.changes = changes;
            self.report_changes(listener);
        }
    }

    #[cold]
    fn report_changes(&mut self, listener: &mut impl Listener) {
        let made = self.number(MADE).load(Ordering::Acquire);
        if made != self.made {
            self.made = made;
            self.find_new();
        }
        for index in 0..self.known.len() {
            self.report_one(index, listener);
        }
    }

    fn report_one(&mut self, index: usize, listener: &mut impl Listener) {
        let Known { entry, ends, reported } = self.known[index];
        let written = self.written(entry);
        // The connections that a host has with itself do not come this way.
        let Some(course) = self.courses.get(&ends) else { return };
        if written != reported {
            let sequence = course.start.wrapping_add(self.before(entry) + u32::from(course.accepted));
            listener.wrote(ends, sequence, written - reported);
            self.known[index].reported = written;
        }
    }

    fn find_new(&mut self) {
        for entry in (1..=ENTRIES as usize).map(|index| index * LINE) {
            let ready = self.small(entry + READY).load(Ordering::Acquire) != 0;
            if ready && !self.known.iter().any(|known| known.entry == entry) {
                let ends =
                    [(FROM, FROM_PORT), (TO, TO_PORT)].map(|(address, port)| self.end(entry + address, entry + port));
                self.known.push(Known { entry, ends, reported: 0 });
            }
        }
    }

    /// A packet that a host sends, from its IP header on.
    #[inline]
    pub fn on_packet(&mut self, ip: &[u8], listener: &mut impl Listener) {
        let Some(tcp) = segment(ip) else { return };
        if tcp[13] & (SYN | FIN | RST) != 0 {
            self.on_mark(ip, tcp, listener);
        }
    }

    #[cold]
    fn on_mark(&mut self, ip: &[u8], tcp: &[u8], listener: &mut impl Listener) {
        let end = |address: usize, port: usize| {
            let octets: [u8; 4] = ip[address..address + 4].try_into().expect("four bytes");
            SocketAddrV4::new(octets.into(), u16::from_be_bytes([tcp[port], tcp[port + 1]]))
        };
        let ends = [end(12, 0), end(16, 2)];
        let sequence = u32::from_be_bytes(tcp[4..8].try_into().expect("four bytes"));
        if tcp[13] & RST != 0 {
            return [ends, [ends[1], ends[0]]].into_iter().for_each(|ends| self.forget(ends, listener));
        }
        if tcp[13] & SYN != 0 {
            // A repeated SYN has the same sequence number; a SYN with another number begins a new connection between
            // these ends.
            if self.courses.get(&ends).is_none_or(|course| course.start != sequence) {
                self.forget(ends, listener);
                self.courses.insert(ends, Course { start: sequence, accepted: tcp[13] & ACK != 0, ended: false });
            }
            return;
        }
        let headers = usize::from(ip[0] & 15) * 4 + usize::from(tcp[12] >> 4) * 4;
        let payload = usize::from(u16::from_be_bytes([ip[2], ip[3]])).saturating_sub(headers);
        self.on_end(ends, sequence.wrapping_add(payload as u32), listener);
    }

    /// No byte comes after this sequence number. A program that was killed may have announced more.
    fn on_end(&mut self, ends: ConnectionEnds, sequence: u32, listener: &mut impl Listener) {
        let Some(course) = self.courses.get_mut(&ends).filter(|course| !course.ended) else { return };
        course.ended = true;
        let all = sequence.wrapping_sub(course.start).wrapping_sub(1);
        let Course { start, accepted, .. } = *course;
        self.report_changes(listener);
        let of_these = |known: &Known| known.ends == ends;
        let before = self.known.iter().find(|known| of_these(known)).map(|known| self.before(known.entry));
        let reported: i64 = self.known.iter().filter(|known| of_these(known)).map(|known| known.reported).sum();
        if let Some(before) = before {
            let first = before.wrapping_sub(u32::from(!accepted));
            let excess = i64::from(first) + reported - i64::from(all);
            if excess != 0 {
                listener.wrote(ends, start, -excess);
            }
        }
        self.give_back(ends);
    }

    /// A connection is over, whatever was written.
    fn forget(&mut self, ends: ConnectionEnds, listener: &mut impl Listener) {
        if self.courses.remove(&ends).is_some() {
            listener.closed(ends);
        }
        self.give_back(ends);
    }

    /// Lets programs use its entries for others.
    fn give_back(&mut self, ends: ConnectionEnds) {
        let (over, known) = std::mem::take(&mut self.known).into_iter().partition(|known| known.ends == ends);
        self.known = known;
        for Known { entry, .. } in over {
            self.number(entry + WRITTEN).store(0, Ordering::Relaxed);
            self.small(entry + READY).store(0, Ordering::Relaxed);
            self.number(entry + COOKIE).store(GIVEN_BACK, Ordering::Release);
        }
    }

    fn written(&self, entry: usize) -> i64 {
        self.number(entry + WRITTEN).load(Ordering::Acquire) as i64
    }

    /// Bytes that the socket took before the library counted: sequence numbers wrap as they do.
    fn before(&self, entry: usize) -> u32 {
        self.number(entry + BEFORE).load(Ordering::Relaxed) as u32
    }

    fn end(&self, address: usize, port: usize) -> SocketAddrV4 {
        let octets: [u8; 4] = self.table[address..address + 4].try_into().expect("four bytes");
        SocketAddrV4::new(octets.into(), u16::from_be_bytes([self.table[port], self.table[port + 1]]))
    }

    fn number(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at.is_multiple_of(8) && at + 8 <= self.table.len());
        // SAFETY: the place lies in the table, which is mapped at a page's border and only changed by atomic
        // operations.
        #[allow(unsafe_code)]
        unsafe {
            AtomicU64::from_ptr(self.table.as_ptr().add(at).cast_mut().cast())
        }
    }

    fn small(&self, at: usize) -> &AtomicU32 {
        debug_assert!(at.is_multiple_of(4) && at + 4 <= self.table.len());
        // SAFETY: as in `number`.
        #[allow(unsafe_code)]
        unsafe {
            AtomicU32::from_ptr(self.table.as_ptr().add(at).cast_mut().cast())
        }
    }
}

/// The TCP header of a packet that has a whole one; none of a later fragment.
#[inline]
fn segment(ip: &[u8]) -> Option<&[u8]> {
    if ip.len() < 20 || ip[0] >> 4 != 4 || ip[9] != TCP || u16::from_be_bytes([ip[6], ip[7]]) & 0x1fff != 0 {
        return None;
    }
    ip.get(usize::from(ip[0] & 15) * 4..).filter(|tcp| tcp.len() >= 20)
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;

    const ENDS: ConnectionEnds = [
        SocketAddrV4::new(std::net::Ipv4Addr::new(10, 0, 0, 1), 5000),
        SocketAddrV4::new(std::net::Ipv4Addr::new(10, 0, 1, 1), 80),
    ];

    /// Bytes that wait, from which sequence number on, and how often a connection ended.
    #[derive(Default, PartialEq, Debug)]
    struct ReceivedBytes {
        waiting: i64,
        first: Option<u32>,
        closed: u32,
    }

    impl Listener for ReceivedBytes {
        fn wrote(&mut self, ends: ConnectionEnds, sequence: u32, bytes: i64) {
            assert_eq!(ends, ENDS);
            self.waiting += bytes;
            self.first.get_or_insert(sequence);
        }

        fn closed(&mut self, ends: ConnectionEnds) {
            assert_eq!(ends, ENDS);
            self.closed += 1;
        }
    }

    struct AduBench {
        adu: Adu,
        received: ReceivedBytes,
        _folder: tempfile::TempDir,
    }

    impl AduBench {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            AduBench {
                adu: Adu::make(&folder.path().join("adu")).unwrap(),
                received: ReceivedBytes::default(),
                _folder: folder,
            }
        }

        /// Makes an account, as the library does.
        fn make(&mut self, place: usize, before: u64) {
            let entry = LINE * place;
            self.adu.number(entry + COOKIE).store(place as u64, Ordering::Relaxed);
            for (ends, address, port) in [(ENDS[0], FROM, FROM_PORT), (ENDS[1], TO, TO_PORT)] {
                self.adu.table[entry + address..entry + address + 4].copy_from_slice(&ends.ip().octets());
                self.adu.table[entry + port..entry + port + 2].copy_from_slice(&ends.port().to_be_bytes());
            }
            self.adu.number(entry + BEFORE).store(before, Ordering::Relaxed);
            self.adu.small(entry + READY).store(1, Ordering::Release);
            self.adu.number(MADE).fetch_add(1, Ordering::Release);
        }

        /// Counts bytes, as the library does.
        fn add(&mut self, place: usize, bytes: i64) {
            self.adu.number(LINE * place + WRITTEN).fetch_add(bytes as u64, Ordering::Relaxed);
            self.adu.number(CHANGES).fetch_add(1, Ordering::Release);
        }

        fn packet(&mut self, flags: u8, sequence: u32, payload: usize) {
            let builder = PacketBuilder::ipv4(ENDS[0].ip().octets(), ENDS[1].ip().octets(), 64);
            let mut builder = builder.tcp(ENDS[0].port(), ENDS[1].port(), sequence, 1000);
            for (flag, set) in [(SYN, 0), (FIN, 1), (RST, 2), (ACK, 3)] {
                if flags & flag != 0 {
                    builder = match set {
                        0 => builder.syn(),
                        1 => builder.fin(),
                        2 => builder.rst(),
                        _ => builder.ack(1),
                    };
                }
            }
            let mut bytes = vec![];
            builder.write(&mut bytes, &vec![0; payload]).unwrap();
            self.adu.report(&mut self.received);
            self.adu.on_packet(&bytes, &mut self.received);
        }
    }

    #[test]
    fn writes_are_told_with_the_connections_own_sequence_numbers() {
        let mut bench = AduBench::new();
        bench.packet(SYN, 1000, 0);
        bench.make(7, 1);
        bench.add(7, 500);
        bench.packet(ACK, 1001, 500);
        assert_eq!(bench.received, ReceivedBytes { waiting: 500, first: Some(1001), closed: 0 });
        bench.add(7, 300);
        bench.add(7, -100);
        bench.packet(ACK, 1501, 100);
        assert_eq!(bench.received.waiting, 700);
    }

    #[test]
    fn the_side_that_accepts_has_no_syn_counted() {
        let mut bench = AduBench::new();
        bench.packet(SYN | ACK, u32::MAX, 0);
        bench.make(7, 40);
        bench.add(7, 5);
        bench.adu.report(&mut bench.received);
        assert_eq!(bench.received, ReceivedBytes { waiting: 5, first: Some(40), closed: 0 });
    }

    #[test]
    fn what_a_killed_program_announced_is_taken_back_at_the_end() {
        let mut bench = AduBench::new();
        bench.packet(SYN, 1000, 0);
        bench.make(7, 1);
        bench.add(7, 9000);
        bench.packet(FIN | ACK, 1001 + 4000, 200);
        assert_eq!((bench.received.waiting, bench.received.closed), (4200, 0), "the kernel had taken 4200");
        assert_eq!(bench.adu.number(LINE * 7 + COOKIE).load(Ordering::Relaxed), GIVEN_BACK);
        bench.packet(FIN | ACK, 1001 + 4000, 200);
        assert_eq!(bench.received.waiting, 4200, "once");
    }

    #[test]
    fn a_connection_that_goes_on_elsewhere_counts_what_went_before() {
        let mut bench = AduBench::new();
        bench.packet(SYN, 1000, 0);
        bench.make(7, 101);
        bench.add(7, 50);
        bench.packet(FIN | ACK, 1001 + 150, 0);
        assert_eq!(bench.received, ReceivedBytes { waiting: 50, first: Some(1101), closed: 0 });
    }

    #[test]
    fn a_reset_or_a_new_connection_ends_an_account() {
        let mut bench = AduBench::new();
        bench.packet(SYN, 1000, 0);
        bench.packet(SYN, 1000, 0);
        bench.make(7, 1);
        bench.add(7, 500);
        bench.packet(RST, 1001, 0);
        assert_eq!(bench.received.closed, 1);
        bench.packet(SYN, 5000, 0);
        bench.make(8, 1);
        bench.packet(SYN, 9000, 0);
        assert_eq!((bench.received.closed, bench.adu.known.len()), (2, 0));
    }

    #[test]
    fn a_write_that_found_no_room_is_an_error() {
        let bench = AduBench::new();
        bench.adu.check().unwrap();
        bench.adu.number(MISSED).fetch_add(1, Ordering::Relaxed);
        assert!(bench.adu.check().unwrap_err().to_string().starts_with("programs wrote to more than 4096 connections"));
    }

    #[test]
    fn bytes_that_a_host_sends_to_itself_are_not_reported() {
        let mut bench = AduBench::new();
        bench.make(7, 1);
        bench.add(7, 500);
        bench.adu.report(&mut bench.received);
        assert_eq!(bench.received, ReceivedBytes::default());
    }
}
