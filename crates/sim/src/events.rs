//! The event set: the time of each source's next event, earliest first.
//!
//! Each source (a port, a line's transmitter, a host's timer, the calendar) has at most one pending event. So an event
//! is its source and its time, the order (time, kind, index) is total, and the set grows with the fabric, not with its
//! traffic. A set of some sources is independent of all others: a run that is divided by switches would have one set
//! for each part.
//!
//! The set is a tournament tree (Knuth, TAOCP vol. 3, 5.2.3 and 5.4.1) with four children per node: every source has a
//! leaf, every inner node holds the earliest event of its four children, and the root the earliest of all. A change
//! updates the nodes on one path: as many steps as the tree is deep, each in one cache line, without a branch that
//! depends on data.

use firstlight_net::PacketId;
use firstlight_units::Time;
use std::hint::select_unpredictable;

/// The kind of source that an event has. Simultaneous events of one set are carried out in the order of the kinds.
///
/// The fabric and the hosts have a set each. At one moment, the fabric's events come before the hosts' events.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(crate) enum EventKind {
    /// The schedule has operations that are due.
    Calendar,
    /// A packet arrives at the switch from a host's interface; or the transmission of an interface that can be paused
    /// ends.
    Nic,
    /// A rack's uplink is free.
    UplinkFree,
    /// A packet arrives at the end of an uplink.
    Uplink,
    /// A downlink is free.
    DownlinkFree,
    /// A packet arrives at the end of a downlink.
    Downlink,
    /// A rack's port of the circuit switch is free.
    CircuitFree,
    /// A packet arrives at the end of a circuit.
    Circuit,
    /// A packet arrives at the end of the link of a switch's output port; or a transmission of a port with classes
    /// ends.
    Port,
    /// The series, or the watched queues, take a sample.
    Sample,
    /// A connection's timer expires, in the hosts' set.
    Timer,
    /// The next flow stops sending, in the hosts' set.
    Stop,
    /// A probe sends, in the hosts' set.
    Probe,
    /// A host's pacer releases a packet.
    Pacer,
    /// The control loop estimates or plans, in the hosts' set.
    Control,
    /// A message starts, or is due, in the hosts' set.
    Message,
    /// A packet leaves the stack of a host whose interface can be paused.
    Stack,
    /// A pause frame takes effect.
    Pause,
    /// A host's rate limiters release a packet, or change a rate.
    Limiter,
    /// A host has fetched a packet from its adapter's buffer, or a packet leaves its stack.
    Adapter,
    /// A packet leaves the random part of a host's stack.
    Jitter,
    /// Hosts are notified of circuits, in the hosts' set.
    Notice,
}

/// The kinds by number; padded, so that a look-up needs no check.
const KINDS: [EventKind; 32] = {
    let mut kinds = [EventKind::Timer; 32];
    let all = [
        EventKind::Calendar,
        EventKind::Nic,
        EventKind::UplinkFree,
        EventKind::Uplink,
        EventKind::DownlinkFree,
        EventKind::Downlink,
        EventKind::CircuitFree,
        EventKind::Circuit,
        EventKind::Port,
        EventKind::Sample,
        EventKind::Timer,
        EventKind::Stop,
        EventKind::Probe,
        EventKind::Pacer,
        EventKind::Control,
        EventKind::Message,
        EventKind::Stack,
        EventKind::Pause,
        EventKind::Limiter,
        EventKind::Adapter,
        EventKind::Jitter,
        EventKind::Notice,
    ];
    let mut i = 0;
    while i < all.len() {
        kinds[i] = all[i];
        i += 1;
    }
    kinds
};

/// A source and the time at which it has work. Events sort by time, then by source.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PendingEvent {
    at: Time,
    /// EventKind in 8 bits, index in 24; the lower half is the packet that the event concerns, where that is known.
    source: u64,
}

/// Each kind has fewer sources than this.
const MOST_SOURCES: usize = 1 << 24;

const NEVER: Time = Time::MAX;

impl PendingEvent {
    #[inline]
    pub(crate) fn new(at: Time, kind: EventKind, index: usize) -> Self {
        PendingEvent { at, source: (kind as u64) << 56 | (index as u64) << 32 }
    }

    #[inline]
    fn about(self, packet: PacketId) -> Self {
        PendingEvent { source: self.source | u64::from(packet.0), ..self }
    }

    #[inline]
    pub(crate) fn at(self) -> Time {
        self.at
    }

    #[inline]
    pub(crate) fn kind(self) -> EventKind {
        KINDS[(self.source >> 56) as usize % KINDS.len()]
    }

    /// Whether the event is of this kind: cheaper than a look-up of its kind.
    #[inline]
    pub(crate) fn is(self, kind: EventKind) -> bool {
        self.source >> 56 == kind as u64
    }

    #[inline]
    pub(crate) fn index(self) -> usize {
        (self.source >> 32) as usize % MOST_SOURCES
    }

    /// The packet that the event concerns; any number where that is not known.
    #[inline]
    pub(crate) fn packet(self) -> PacketId {
        PacketId(self.source as u32)
    }
}

/// Four nodes that compete, in the order of their sources.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Rivals {
    at: [Time; 4],
    source: [u64; 4],
}

const _: () = assert!(size_of::<Rivals>() == 64, "a group is one cache line");

impl Rivals {
    const EMPTY: Rivals = Rivals { at: [NEVER; 4], source: [u64::MAX; 4] };

    #[inline]
    fn get(&self, which: usize) -> PendingEvent {
        PendingEvent { at: self.at[which % 4], source: self.source[which % 4] }
    }

    #[inline]
    fn set(&mut self, which: usize, event: PendingEvent) {
        self.at[which % 4] = event.at;
        self.source[which % 4] = event.source;
    }

    /// The earliest event; of simultaneous events, that of the first source.
    #[inline]
    fn earliest(&self) -> PendingEvent {
        let [a, b, c, d] = self.at;
        let (second, fourth) = (b < a, d < c);
        let (left, right) = (select_unpredictable(second, b, a), select_unpredictable(fourth, d, c));
        let loses = right < left;
        let which = select_unpredictable(loses, 2 + usize::from(fourth), usize::from(second));
        PendingEvent { at: select_unpredictable(loses, right, left), source: self.source[which % 4] }
    }
}

/// The tournament.
#[derive(Clone, Debug)]
pub(crate) struct EventSet {
    /// The winner: node 1, the root.
    earliest: PendingEvent,
    /// Node n is in group n / 4, beside its rivals. The nodes below node n are 4 n to 4 n + 3, the leaves those from
    /// 4^depth on.
    groups: Vec<Rivals>,
    /// The first leaf of each kind's sources.
    first: [u32; KINDS.len()],
    /// How many groups from a leaf to the root.
    depth: u32,
    sources: usize,
}

impl EventSet {
    /// A set for these numbers of sources of each kind, with no event pending.
    pub(crate) fn new(sources: &[(EventKind, usize)]) -> Self {
        let mut sources = sources.to_vec();
        sources.sort_unstable();
        let count = sources.iter().map(|(_, n)| n).sum::<usize>();
        let depth = count.max(2).next_power_of_two().ilog2().div_ceil(2);
        let mut first = [0; KINDS.len()];
        let mut next = 1 << (2 * depth);
        let mut groups = vec![Rivals::EMPTY; next / 2];
        for (kind, n) in sources {
            assert!(n < MOST_SOURCES, "{n} sources of events are too many");
            first[kind as usize] = next as u32;
            for index in 0..n {
                groups[(next + index) / 4].set(next + index, PendingEvent::new(NEVER, kind, index));
            }
            next += n;
        }
        EventSet { earliest: Rivals::EMPTY.get(0), groups, first, depth, sources: count }
    }

    #[inline]
    fn node(&self, n: usize) -> PendingEvent {
        self.groups[n / 4].get(n)
    }

    #[inline]
    fn leaf(&self, kind: EventKind, index: usize) -> usize {
        self.first[kind as usize] as usize + index
    }

    /// Whether this source has work pending.
    #[inline]
    pub(crate) fn is_pending(&self, kind: EventKind, index: usize) -> bool {
        self.node(self.leaf(kind, index)).at < NEVER
    }

    /// The time of the earliest event; `None` when nothing is pending.
    #[inline]
    pub(crate) fn next(&self) -> Option<Time> {
        Some(self.earliest.at).filter(|at| *at < NEVER)
    }

    /// The earliest event, if it is due by `limit`. It stays until its source's time is set anew.
    #[inline]
    pub(crate) fn due(&self, limit: Time) -> Option<PendingEvent> {
        let event = self.earliest;
        (event.at <= limit && event.at < NEVER).then_some(event)
    }

    /// How many sources there are.
    #[inline]
    pub(crate) fn sources(&self) -> usize {
        self.sources
    }

    /// The earliest event of the part of all sources that `event`'s source is in, where 4^`level` parts, at least four,
    /// are equal. It is one of the next 4^`level` or so events after `event`, unless its time is "never".
    #[inline]
    pub(crate) fn upcoming(&self, event: PendingEvent, level: u32) -> PendingEvent {
        self.node(self.leaf(event.kind(), event.index()) >> (2 * self.depth.saturating_sub(level)))
    }

    /// Sets when this source has work; `None` for never.
    #[inline]
    pub(crate) fn set(&mut self, at: Option<Time>, kind: EventKind, index: usize) {
        self.set_about(at, kind, index, PacketId(0));
    }

    /// Sets when this source has work, which concerns this packet.
    #[inline]
    pub(crate) fn set_about(&mut self, at: Option<Time>, kind: EventKind, index: usize, packet: PacketId) {
        let mut n = self.leaf(kind, index);
        let mut winner = PendingEvent::new(at.unwrap_or(NEVER), kind, index).about(packet);
        while n > 1 {
            let group = &mut self.groups[n / 4];
            group.set(n, winner);
            winner = group.earliest();
            n /= 4;
        }
        self.earliest = winner;
    }

    /// Sets when this source has work if that is earlier than it was.
    #[inline]
    pub(crate) fn set_if_earlier(&mut self, at: Time, kind: EventKind, index: usize) {
        if at < self.node(self.leaf(kind, index)).at {
            self.set(Some(at), kind, index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn an_event_keeps_its_parts() {
        for (i, kind) in KINDS.into_iter().take(EventKind::Notice as usize + 1).enumerate() {
            assert_eq!(kind as usize, i, "the table is in the order of the kinds");
            let event = PendingEvent::new(Time::from_ps(7 << 40), kind, 65_535);
            assert_eq!((event.at(), event.kind(), event.index()), (Time::from_ps(7 << 40), kind, 65_535));
        }
        let event = PendingEvent::new(Time::ZERO, EventKind::Port, MOST_SOURCES - 1).about(PacketId(u32::MAX));
        assert_eq!(
            (event.kind(), event.index(), event.packet()),
            (EventKind::Port, MOST_SOURCES - 1, PacketId(u32::MAX))
        );
        assert!(
            PendingEvent::new(Time::ZERO, EventKind::Sample, 0) > PendingEvent::new(Time::ZERO, EventKind::Port, 9)
        );
        assert_eq!(EventSet::new(&[]).next(), None);
    }

    proptest! {
        #[test]
        fn behaves_as_a_sorted_set(
            ops in prop::collection::vec(
                (any::<bool>(), any::<bool>(), 0usize..20, prop::option::of(0u64..50)), 1..300,
            ),
            nics in 1usize..20, ports in 1usize..20,
        ) {
            let mut events = EventSet::new(&[(EventKind::Port, ports), (EventKind::Nic, nics)]);
            let mut model = BTreeSet::new();
            for (take, nic, index, at) in ops {
                let at = at.map(Time::from_ps);
                if let (true, Some(limit)) = (take, at) {
                    let due = events.due(limit);
                    prop_assert_eq!(due, model.first().copied().filter(|first: &PendingEvent| first.at() <= limit));
                    if let Some(due) = due {
                        model.remove(&due);
                        events.set(None, due.kind(), due.index());
                    }
                    continue;
                }
                let (kind, index) = if nic { (EventKind::Nic, index % nics) } else { (EventKind::Port, index % ports) };
                model.retain(|e| (e.kind(), e.index()) != (kind, index));
                events.set_about(at, kind, index, PacketId(7));
                model.extend(at.map(|at| PendingEvent::new(at, kind, index).about(PacketId(7))));
                let own = PendingEvent::new(Time::ZERO, kind, index);
                let part = |e: &PendingEvent| events.leaf(e.kind(), e.index()) >> (2 * (events.depth - 1));
                let first = model.iter().find(|e| part(e) == part(&own));
                prop_assert_eq!(events.upcoming(own, 1).at(), first.map_or(NEVER, |first| first.at()));
                prop_assert_eq!(events.upcoming(own, 40).at(), at.unwrap_or(NEVER));
                prop_assert_eq!(events.is_pending(kind, index), at.is_some());
                prop_assert_eq!(events.next(), model.first().map(|first| first.at()));
            }
        }
    }
}
