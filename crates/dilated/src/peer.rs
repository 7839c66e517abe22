//! The other machine of a run as this one sees it: sealed datagrams to and from it, its clock, and its last state.
//!
//! Each side sends its whole state every few milliseconds. A state only grows, so that a lost datagram delays news and
//! nothing has to be sent again.

use crate::clock;
use crate::seal::{Opener, Sealer};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Nanoseconds between two states.
const EVERY: u64 = 5_000_000;
/// How many measurements of the other clock are looked at.
const SAMPLES: usize = 256;
/// Kinds of payloads.
const PACKET: u8 = 0;
const STATE: u8 = 1;
/// Bytes of a packet's head: its kind, device and time, and its interface's header.
const PACKET_HEAD: usize = 1 + 2 + 8;

/// How many times a value was measured, value by value.
pub type Counts = Vec<(u64, u64)>;

/// The readings of both sides' clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// When the state was sent, by the sender's clock.
    sent: u64,
    /// When the other side's last state was sent, by its clock; 0 before the first one.
    theirs: u64,
    /// Nanoseconds since that state arrived.
    held: u64,
}

/// The state of a machine that has joined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JoinedState {
    /// The machine's hosts are set up.
    pub ready: bool,
    /// The machine's programs that have ended, by their places in its plan, with their exit codes.
    pub ended: Vec<(u32, i32)>,
    /// The reason why the run cannot continue.
    pub failed: Option<String>,
    /// The machine has finished its work.
    pub finished: bool,
    /// The machine's measurements, at the end of the run.
    pub measured: Option<JoinedMeasurements>,
}

/// The measurements of a machine that has joined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JoinedMeasurements {
    /// By how many nanoseconds packets were late when hosts got them.
    pub delivered: Counts,
    /// Lateness of the machine's timers.
    pub timers: Counts,
    /// The part of its time that the machine lost to its own host.
    pub stolen: f64,
    /// Packets that hosts' devices did not take.
    pub lost: u64,
    /// Packets that it sent, and those that it got.
    pub sent: u64,
    pub got: u64,
}

/// The state of the engine's machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineState {
    /// Links' rates of the machine's hosts, in bytes in a second of the machine's time.
    pub rates: Vec<u64>,
    /// Processors that each host has in its own time.
    pub cores: Option<f64>,
    /// Largest IP packet of all hosts.
    pub mtu: u16,
    /// The fabric's time has begun.
    pub begun: bool,
    /// The run is over.
    pub over: bool,
    /// Packets for that machine until then.
    pub sent: u64,
    /// Whether the machine's last state has arrived here.
    pub done: bool,
}

#[derive(Serialize, Deserialize)]
struct Stated<S> {
    clock: ClockReading,
    state: S,
}

/// A packet that came from the other machine.
pub struct PacketFrom<'d> {
    /// The device of that machine.
    pub device: usize,
    /// The time that was written on it, by this machine's clock.
    pub time: u64,
    /// The interface's header and the packet.
    pub content: &'d [u8],
}

/// The content of a datagram from the other machine.
pub enum Received<'d, S> {
    Packet(PacketFrom<'d>),
    State(S),
}

/// The other machine.
pub struct Peer {
    sealer: Sealer,
    opener: Opener,
    clock: OtherClock,
    due: u64,
    datagram: Vec<u8>,
    /// When the last datagram of the other machine arrived.
    pub heard: u64,
    /// Packets that were sent to it and that came from it.
    pub sent: u64,
    pub got: u64,
}

impl Peer {
    pub fn new(sealer: Sealer, opener: Opener) -> Self {
        let heard = clock::now();
        Peer {
            sealer,
            opener,
            clock: OtherClock::default(),
            due: 0,
            datagram: Vec::with_capacity(crate::seal::LONGEST),
            heard,
            sent: 0,
            got: 0,
        }
    }

    /// The other clock minus this one, and the round trip by which that was measured, in nanoseconds.
    pub fn clock(&self) -> Option<(i64, u64)> {
        self.clock.best()
    }

    /// Datagrams that were not taken: foreign, changed, or a second time.
    pub fn refused(&self) -> u64 {
        self.opener.refused
    }

    /// A packet for one of its devices, ready to be sent.
    pub fn packet(&mut self, device: usize, time: u64, parts: [&[u8]; 2]) -> &[u8] {
        self.sent += 1;
        self.sealer.seal(&mut self.datagram, |datagram| {
            datagram.push(PACKET);
            datagram.extend((device as u16).to_le_bytes());
            datagram.extend(time.to_le_bytes());
            parts.into_iter().for_each(|part| datagram.extend(part));
        });
        &self.datagram
    }

    /// This machine's state, ready to be sent, when it is time to or `news` says that it is.
    pub fn state<S: Serialize>(&mut self, news: bool, state: S) -> Option<&[u8]> {
        let now = clock::now();
        if now < self.due && !news {
            return None;
        }
        self.due = now + EVERY;
        let stated = Stated { clock: self.clock.reading(now), state };
        self.sealer.seal(&mut self.datagram, |datagram| {
            datagram.push(STATE);
            serde_json::to_writer(datagram, &stated).expect("JSON can represent it");
        });
        Some(&self.datagram)
    }

    /// Opens a datagram; none if it is not valid or came before.
    pub fn receive<'d, S: for<'a> Deserialize<'a>>(&mut self, datagram: &'d [u8]) -> Option<Received<'d, S>> {
        let (kind, payload) = self.opener.open(datagram)?.split_first()?;
        let now = clock::now();
        self.heard = now;
        if *kind == STATE {
            let Stated { clock, state } = serde_json::from_slice(payload).ok()?;
            // A state that was overtaken says nothing new.
            return self.clock.on_reading(clock, now).then_some(Received::State(state));
        }
        let (head, content) = payload.split_at_checked(PACKET_HEAD - 1)?;
        self.got += 1;
        let device = u16::from_le_bytes([head[0], head[1]]).into();
        let theirs = u64::from_le_bytes(head[2..].try_into().expect("eight bytes"));
        let offset = self.clock.best().map_or(0, |(offset, _)| offset);
        Some(Received::Packet(PacketFrom { device, time: theirs.saturating_add_signed(-offset), content }))
    }
}

/// How far the other clock is from this one, as the Network Time Protocol measures it (RFC 5905, section 8): by round
/// trips, of which the shortest counts.
#[derive(Default)]
struct OtherClock {
    /// The last reading that came, and when.
    last: Option<(ClockReading, u64)>,
    /// Offsets and round trips.
    samples: VecDeque<(i64, u64)>,
    best: Option<(i64, u64)>,
}

impl OtherClock {
    fn reading(&self, now: u64) -> ClockReading {
        match self.last {
            None => ClockReading { sent: now, theirs: 0, held: 0 },
            Some((last, came)) => ClockReading { sent: now, theirs: last.sent, held: now - came },
        }
    }

    /// Takes a reading that has come; false for one that was sent before the last one.
    fn on_reading(&mut self, reading: ClockReading, now: u64) -> bool {
        if self.last.is_some_and(|(last, _)| reading.sent <= last.sent) {
            return false;
        }
        self.last = Some((reading, now));
        if reading.theirs == 0 {
            return true;
        }
        let Some(round_trip) = now.checked_sub(reading.theirs).and_then(|whole| whole.checked_sub(reading.held)) else {
            return true;
        };
        let offset = reading.sent as i64 - (now - round_trip / 2) as i64;
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back((offset, round_trip));
        self.best = self.samples.iter().min_by_key(|(_, round_trip)| *round_trip).copied();
        true
    }

    fn best(&self) -> Option<(i64, u64)> {
        self.best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The other clock is 1000 ahead; ways take 30 and 10, and once 500 more.
    #[test]
    fn the_shortest_round_trip_says_how_far_the_other_clock_is() {
        let (mut here, mut there) = (OtherClock::default(), OtherClock::default());
        for (now, more) in [(5_000, 500), (6_000, 0), (7_000, 500)] {
            there.on_reading(here.reading(now), now + 1000 + 30);
            here.on_reading(there.reading(now + 1000 + 40), now + 50 + more);
        }
        assert_eq!(here.best(), Some((1010, 40)), "half the difference of the two ways is beyond measure");
    }

    fn pair() -> (Peer, Peer) {
        let peer = |send: &[u8], take: &[u8]| Peer::new(Sealer::new(send, 0), Opener::new(take, 0));
        (peer(b"there", b"back"), peer(b"back", b"there"))
    }

    #[test]
    fn packets_and_states_come_as_they_were_sent() {
        let (mut here, mut there) = pair();
        let datagram = here.packet(3, 77, [&[1; 10], b"packet"]).to_vec();
        let Some(Received::Packet(packet)) = there.receive::<EngineState>(&datagram) else { panic!("a packet") };
        assert_eq!((packet.device, packet.time, &packet.content[10..]), (3, 77, &b"packet"[..]));
        assert!(there.receive::<EngineState>(&datagram).is_none(), "once");
        let state = EngineState { rates: vec![5], begun: true, sent: 9, ..EngineState::default() };
        let datagram = here.state(true, &state).unwrap().to_vec();
        let Some(Received::State(came)) = there.receive::<EngineState>(&datagram) else { panic!("a state") };
        assert_eq!(came, state);
        assert!(here.state(false, &state).is_none(), "not again at once");
        assert_eq!((here.sent, there.got, there.refused()), (1, 1, 1));
    }

    #[test]
    fn a_state_that_was_overtaken_is_not_taken() {
        let (mut here, mut there) = pair();
        let mut state =
            |finished| here.state(true, JoinedState { finished, ..JoinedState::default() }).unwrap().to_vec();
        let (first, second) = (state(false), state(true));
        assert!(matches!(there.receive::<JoinedState>(&second), Some(Received::State(state)) if state.finished));
        assert!(there.receive::<JoinedState>(&first).is_none());
        assert_eq!(there.refused(), 0);
    }

    #[test]
    fn malformed_payloads_are_not_taken() {
        let (mut here, mut there) = pair();
        for payload in [&b""[..], b"\0", b"\0short", b"\x01{}", b"\x01"] {
            let mut datagram = vec![];
            here.sealer.seal(&mut datagram, |into| into.extend(payload));
            assert!(there.receive::<EngineState>(&datagram).is_none(), "{payload:?}");
        }
    }
}
