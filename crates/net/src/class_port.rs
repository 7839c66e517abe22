//! A port with traffic classes: a queue for each of them, one transmitter, one link.
//!
//! When the transmitter becomes idle, it takes the oldest packet of the class that the port's [`ClassOrder`]
//! ([`order`]) chooses. A transmission is never interrupted. With strict priorities a higher number goes first, as with
//! the class selectors of DSCP (RFC 2474, section 4.2.2, and RFC 4594). With weights the classes share the link. Each
//! class has a [`Discipline`] of its own, which sees that class's queue alone; the packet in service counts for its own
//! class.
//!
//! The port chooses the next packet only when the transmitter becomes idle. It therefore waits for two moments, the end
//! of the transmission and the first packet's arrival at the far end, and one event is pending: that of the earlier
//! moment. A port with one class does exactly what a [`FifoPort`](crate::FifoPort) does, at two events per packet.
//!
//! A [`PausablePort`] is the same port on lossless Ethernet ([`pausable`]): classes can be paused, pause frames go out
//! before all packets, and the end of each transmission is an event of its own.

mod order;
mod pausable;

pub use order::{ClassOrder, StrictPriority, Weighted};
pub use pausable::PausablePort;

use crate::discipline::{Discipline, Policer, QueueState, Verdict};
use crate::pause::{PauseControl, Unpausable};
use crate::pfc::PAUSE_FRAME;
use crate::queue::{PolicedQueue, QueueCounts, QueuedPacket};
use crate::switch_port::{QueueFull, SwitchPort};
use crate::{Ecn, Line, Packet, PacketId, Ring, Serializer};
use firstlight_units::{Bytes, Span, Time};

/// Most classes that a port has.
pub const CLASSES: usize = 8;

/// A class's queue, and its part of the transmitter.
#[derive(Clone, Debug)]
struct ClassQueue {
    queue: PolicedQueue,
    /// How long the waiting packets last.
    time: Span,
    /// When the transmitter had sent, or will have sent, the last packet that it took from here.
    served: Time,
}

/// The port. Pauses cost nothing where `C` is [`Unpausable`].
#[derive(Clone, Debug)]
pub struct ClassPort<C = Unpausable, O = StrictPriority> {
    line: Line,
    serializer: Serializer,
    /// Bit c: class c has packets waiting.
    ready: u8,
    control: C,
    order: O,
    classes: Box<[ClassQueue]>,
    /// Packets on the link that are to be marked, in their order.
    to_mark: Ring<PacketId>,
    /// When the port is to be stepped, as last returned.
    pending: Option<Time>,
    peak: u32,
}

impl<C: PauseControl, O: ClassOrder> ClassPort<C, O> {
    /// A port with this serialization, this (already stretched) propagation delay and one class for each discipline,
    /// class 0 first. Packets of a higher class than there is belong to the highest. `seed` seeds the disciplines'
    /// random numbers. All weights are equal.
    ///
    /// # Panics
    /// When there are not 1 to 8 classes, or [`Discipline::check`] fails.
    pub fn new(serializer: Serializer, delay: Span, disciplines: &[Discipline], seed: u64) -> Self {
        ClassPort::with_weights(serializer, delay, disciplines, &[], seed)
    }

    /// An empty port with a weight for each class, where classes are [`Weighted`].
    ///
    /// # Panics
    /// As [`ClassPort::new`].
    pub fn with_weights(
        serializer: Serializer,
        delay: Span,
        disciplines: &[Discipline],
        weights: &[u32],
        seed: u64,
    ) -> Self {
        assert!((1..=CLASSES).contains(&disciplines.len()), "a port has 1 to 8 classes, not {}", disciplines.len());
        let class = |(class, discipline)| ClassQueue {
            queue: PolicedQueue::new(Policer::new(discipline, &serializer, seed.wrapping_add(class as u64))),
            time: Span::ZERO,
            served: Time::ZERO,
        };
        ClassPort {
            line: Line::new(serializer, delay),
            serializer,
            ready: 0,
            control: C::default(),
            order: O::new(weights),
            classes: disciplines.iter().enumerate().map(class).collect(),
            to_mark: Ring::with_capacity(16),
            pending: None,
            peak: 0,
        }
    }

    /// The class whose packet goes next, if any packet waits that may be sent and no pause frame goes before it.
    #[inline]
    fn next_class(&self) -> Option<usize> {
        if self.control.pause_frame_waits() {
            return None;
        }
        self.order.next(self.control.unpaused(self.ready))
    }

    /// Lets the transmitter take a packet, or a pause frame, if it is free and one waits.
    fn serve(&mut self, now: Time) {
        if self.line.free_at() > now {
            return;
        }
        if self.control.begin_pause_frame() {
            return self.line.hold(PAUSE_FRAME, now);
        }
        let Some(class) = self.next_class() else { return };
        let own = &mut self.classes[class];
        let packet = own.queue.pop().expect("a class that is ready has a packet");
        own.time = own.time - self.serializer.time(packet.size);
        if own.queue.is_empty() {
            self.ready &= !(1 << class);
        }
        self.start(class, packet, now);
    }

    /// The transmitter, which is free, takes this packet.
    fn start(&mut self, class: usize, packet: QueuedPacket, now: Time) {
        self.line.send(packet.id, packet.size, now);
        self.control.begin(packet.id);
        self.order.begin(class, packet.size);
        let own = &mut self.classes[class];
        own.served = self.line.free_at();
        own.queue.counts.sent += 1;
        if own.queue.policer.depart(packet.ecn, packet.size, own.served) == Verdict::Mark {
            own.queue.counts.marked += u64::from(packet.ecn != Ecn::Ce);
            self.to_mark.push(packet.id);
        }
    }

    /// The state that a packet of this class and size finds.
    fn state(&self, class: usize, size: u16, now: Time) -> QueueState {
        let ClassQueue { queue, time, served } = &self.classes[class];
        let own = served.saturating_since(now);
        let open = self.control.unpaused(1 << class) != 0 && !self.control.is_serving();
        QueueState {
            now,
            waiting: queue.len(),
            backlog: *time + own,
            time: self.serializer.time(size),
            at_once: self.line.free_at() <= now && open && queue.is_empty(),
            empty_since: (queue.is_empty() && own.is_zero()).then_some(*served),
        }
    }

    /// The time of the port's next event.
    fn next(&self) -> Option<Time> {
        let waits = if C::ENDS_ARE_EVENTS { self.control.is_serving() } else { self.next_class().is_some() };
        let free = waits.then(|| self.line.free_at());
        [free, self.line.next_arrival()].into_iter().flatten().min()
    }

    /// The next step, when it is earlier than it was to be.
    #[inline]
    fn earlier(&mut self) -> Option<Time> {
        let next = self.next();
        let earlier = next.filter(|next| self.pending.is_none_or(|pending| *next < pending));
        self.pending = next;
        earlier
    }

    /// The class that a packet belongs to.
    #[inline]
    pub fn class_of(&self, packet: &Packet) -> usize {
        usize::from(packet.class()).min(self.classes.len() - 1)
    }

    /// The counters of a class's packets.
    ///
    /// # Panics
    /// When the port has no such class.
    pub fn counts(&self, class: usize) -> QueueCounts {
        self.classes[class].queue.counts
    }

    /// Packets of a class that wait at `now`, the one in service not counted.
    ///
    /// # Panics
    /// When the port has no such class.
    pub fn class_waiting_at(&self, class: usize, now: Time) -> u32 {
        // At the very moment at which the transmitter comes free, the next packet no longer waits.
        let starts = self.line.free_at() <= now && self.next_class() == Some(class);
        self.classes[class].queue.len() - u32::from(starts)
    }

    fn total(&self, count: impl Fn(&QueueCounts) -> u64) -> u64 {
        self.classes.iter().map(|class| count(&class.queue.counts)).sum()
    }
}

impl<C: PauseControl, O: ClassOrder> SwitchPort for ClassPort<C, O> {
    fn offer(&mut self, id: PacketId, packet: &mut Packet, now: Time) -> Result<Option<Time>, QueueFull> {
        // Where the end of a transmission is an event, the next transmission begins only at such an event.
        if !C::ENDS_ARE_EVENTS {
            self.serve(now);
        }
        let class = self.class_of(packet);
        let state = self.state(class, packet.size(), now);
        let own = &mut self.classes[class];
        let admitted = own.queue.admit(id, packet, &state)?;
        if state.at_once {
            self.start(class, admitted, now);
        } else {
            own.queue.push(admitted);
            own.time += state.time;
            self.ready |= 1 << class;
            self.peak = self.peak.max(self.waiting_at(now));
        }
        Ok(self.earlier())
    }

    fn step(&mut self, now: Time, mut mark: impl FnMut(PacketId)) -> (Option<PacketId>, Option<Time>) {
        if self.line.free_at() <= now {
            self.control.finish();
        }
        self.serve(now);
        let mut arrived = None;
        if self.line.next_arrival().is_some_and(|at| at <= now) {
            let (id, _) = self.line.arrive();
            if self.to_mark.front() == Some(id) {
                self.to_mark.pop();
                mark(id);
            }
            arrived = Some(id);
        }
        self.pending = self.next();
        (arrived, self.pending)
    }

    fn link(&self) -> (Serializer, Span) {
        self.line.link()
    }

    fn refuse(&mut self, packet: &Packet) {
        self.classes[self.class_of(packet)].queue.refuse();
    }

    fn waiting_at(&self, now: Time) -> u32 {
        (0..self.classes.len()).map(|class| self.class_waiting_at(class, now)).sum()
    }

    fn backlog(&self, now: Time) -> Bytes {
        let waiting: Span = self.classes.iter().map(|class| class.time).sum();
        self.serializer.bytes_in(waiting + self.line.free_at().saturating_since(now))
    }

    fn queue_of(&self, packet: &Packet, now: Time) -> (usize, Bytes) {
        let class = self.class_of(packet);
        let own = &self.classes[class];
        (class, self.serializer.bytes_in(own.time + own.served.saturating_since(now)))
    }

    fn offered(&self) -> u64 {
        self.total(|counts| counts.offered)
    }

    fn delivered(&self) -> u64 {
        self.line.arrived()
    }

    fn dropped(&self) -> u64 {
        self.total(|counts| counts.dropped)
    }

    fn marked(&self) -> u64 {
        self.total(|counts| counts.marked)
    }

    fn held(&self) -> u64 {
        self.line.held() + self.classes.iter().map(|class| u64::from(class.queue.len())).sum::<u64>()
    }

    fn peak(&self) -> u64 {
        u64::from(self.peak)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PhantomConfig;
    use firstlight_units::Rate;

    fn port(disciplines: &[Discipline]) -> ClassPort {
        ClassPort::new(Serializer::new(Rate::from_gbps(10), 1), Span::from_us(1), disciplines, 1)
    }

    fn ns(n: u64) -> Time {
        Time::ZERO + Span::from_ns(n)
    }

    fn packet(class: u8) -> Packet {
        Packet::default().with_size(1500).with_ecn(Ecn::Ect0).with_class(class)
    }

    /// Steps the port until it is empty. Returns the arrivals with their times, and the marked packets.
    fn drain<O: ClassOrder>(
        port: &mut ClassPort<Unpausable, O>,
        mut next: Option<Time>,
    ) -> (Vec<(u32, u64)>, Vec<u32>) {
        let (mut arrivals, mut marks) = (Vec::new(), Vec::new());
        while let Some(now) = next {
            let (id, then) = port.step(now, |id| marks.push(id.0));
            arrivals.extend(id.map(|id| (id.0, now.as_ps() / 1000)));
            next = then;
        }
        (arrivals, marks)
    }

    /// 1,500 bytes last 1.2 us at 10 Gb/s; 1 us of propagation.
    #[test]
    fn the_highest_class_first_and_nothing_broken_off() {
        let mut port = port(&[Discipline::default(); 8]);
        assert_eq!(port.offer(PacketId(0), &mut packet(0), ns(0)), Ok(Some(ns(2200))));
        // Something waits now, so the transmitter's freedom comes first.
        assert_eq!(port.offer(PacketId(1), &mut packet(0), ns(100)), Ok(Some(ns(1200))));
        assert_eq!(port.offer(PacketId(2), &mut packet(3), ns(200)), Ok(None));
        assert_eq!(port.offer(PacketId(3), &mut packet(7), ns(300)), Ok(None));
        assert_eq!(port.offer(PacketId(4), &mut packet(7), ns(300)), Ok(None));
        assert_eq!((port.waiting_at(ns(300)), port.peak(), port.backlog(ns(600))), (4, 4, Bytes::new(750 + 4 * 1500)));
        let queues = [0, 3, 7].map(|class| port.queue_of(&packet(class), ns(600)));
        assert_eq!(queues, [(0, Bytes::new(750 + 1500)), (3, Bytes::new(1500)), (7, Bytes::new(3000))]);
        let (arrivals, _) = drain(&mut port, Some(ns(1200)));
        assert_eq!(arrivals, [(0, 2200), (3, 3400), (4, 4600), (2, 5800), (1, 7000)]);
        assert_eq!((port.counts(7).sent, port.counts(0).sent, port.counts(5).offered), (2, 2, 0));
    }

    /// Class 0 sends three packets for one of class 1, and the higher class begins. A class that is alone has the whole
    /// link.
    #[test]
    fn weights_share_the_link() {
        let (link, delay) = (Serializer::new(Rate::from_gbps(10), 1), Span::from_us(1));
        let queues = [Discipline::default(); 2];
        let mut port = ClassPort::<Unpausable, Weighted>::with_weights(link, delay, &queues, &[3, 1], 1);
        let mut next = None;
        for id in 0..12 {
            next = port.offer(PacketId(id), &mut packet(u8::from(id >= 8)), ns(0)).unwrap().or(next);
        }
        let (arrivals, _) = drain(&mut port, next);
        assert_eq!(arrivals.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [0, 8, 1, 2, 9, 3, 4, 5, 10, 6, 7, 11]);
        assert_eq!(arrivals[11].1, 12 * 1200 + 1000);
    }

    #[test]
    fn a_class_above_the_highest_is_the_highest_and_limits_are_each_class_s_own() {
        let mut port = port(&[Discipline::packets(Some(1), None), Discipline::packets(Some(2), Some(0))]);
        let offer = |id, class, port: &mut ClassPort| {
            let mut packet = packet(class);
            (port.offer(PacketId(id), &mut packet, ns(0)).is_ok(), packet.ecn() == Ecn::Ce)
        };
        assert_eq!(offer(0, 0, &mut port), (true, false));
        assert_eq!(offer(1, 0, &mut port), (true, false));
        assert_eq!(offer(2, 0, &mut port), (false, false));
        assert_eq!(offer(3, 1, &mut port), (true, true));
        assert_eq!(offer(4, 7, &mut port), (true, true));
        assert_eq!(offer(5, 7, &mut port), (false, false));
        let counts = QueueCounts { offered: 3, dropped: 1, marked: 2, peak: 2, ..QueueCounts::default() };
        assert_eq!((port.counts(1), port.marked(), port.dropped()), (counts, 2, 2));
    }

    /// The phantom queue sees departures, in their order: the packets that leave first do not find it long.
    #[test]
    fn a_phantom_queue_marks_what_leaves_last() {
        let phantom = PhantomConfig { drain: 0.5, threshold: Bytes::new(1000) };
        let mut port = port(&[Discipline::phantom(phantom)]);
        for id in 0..5 {
            let mut packet = packet(0);
            port.offer(PacketId(id), &mut packet, ns(0)).unwrap();
            assert_eq!(packet.ecn(), Ecn::Ect0, "it is marked when it leaves");
        }
        // Each adds 1,500 bytes and 750 drain meanwhile: found are 0, 750, 1500, ...
        assert_eq!(drain(&mut port, Some(ns(1200))).1, [2, 3, 4]);
        assert_eq!(port.marked(), 3);
    }
}
