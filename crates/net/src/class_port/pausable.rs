//! A port on lossless Ethernet: its classes can be paused, and it tells the far end to pause (IEEE 802.1Qbb, 802.3x).
//!
//! Whoever has the port says which classes the far end is to pause ([`PausablePort::tell`]). A pause frame then takes its place
//! before all packets, after the frame in service. It carries the state of all classes at the moment at which it begins, as
//! the class-enable vector of 802.1Qbb does: what changed back while it waited is never told. It occupies the transmitter and
//! is no packet; that its last bit has left is told by [`PausablePort::take_sent`], and the rest of its way is the caller's.

use super::{CLASSES, ClassPort};
use crate::pfc::PAUSE_FRAME;
use crate::{Discipline, PacketId, Serializer};
use firstlight_units::{Span, Time};

/// A [`ClassPort`] that can be paused.
pub type PausablePort = ClassPort<true>;

/// What a transmitter has finished.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sent {
    /// A packet: its last bit has left the switch.
    Packet(PacketId),
    /// A pause frame: the far end is to pause just these classes, a bit each.
    Pause(u8),
}

/// The pause frame's bit.
const FRAME: u16 = 1 << CLASSES;

impl<const PAUSABLE: bool> ClassPort<PAUSABLE> {
    pub(super) fn start_pause_frame(&mut self, now: Time) {
        self.line.hold(PAUSE_FRAME, now);
        self.ready &= !FRAME;
        self.told = self.wanted;
        self.serving = Some(Sent::Pause(self.told));
    }

    /// Whether a packet of the class need not wait, at an idle transmitter.
    pub(super) fn takes_at_once(&self, class: usize) -> bool {
        self.serving.is_none() && self.open & (1 << class) != 0 && self.queues[class].packets.is_empty()
    }

    /// Notes what the transmitter has finished by now.
    pub(super) fn finish(&mut self, now: Time) {
        if self.serving.is_some() && self.line.free_at() <= now {
            self.sent = self.serving.take();
        }
    }
}

impl PausablePort {
    /// As [`ClassPort::new`].
    ///
    /// # Panics
    /// As there.
    pub fn pausable(serializer: Serializer, delay: Span, disciplines: &[Discipline], seed: u64) -> Self {
        Self::with(serializer, delay, disciplines, seed)
    }

    /// From now on these classes, a bit each, may not be sent; a frame in service is finished. `Some(t)`: the port must now be
    /// stepped at `t`, which is earlier than it was to be.
    pub fn pause(&mut self, classes: u8, now: Time) -> Option<Time> {
        self.open = !u16::from(classes);
        self.go_on(now)
    }

    /// From now on the far end is to pause these classes. As [`PausablePort::pause`].
    pub fn tell(&mut self, classes: u8, now: Time) -> Option<Time> {
        self.wanted = classes;
        if self.wanted == self.told {
            self.ready &= !FRAME;
        } else {
            self.ready |= FRAME;
        }
        self.go_on(now)
    }

    fn go_on(&mut self, now: Time) -> Option<Time> {
        if self.serving.is_none() {
            self.serve(now);
        }
        self.earlier()
    }

    /// What the transmitter finished at the last step, if anything; told once.
    pub fn take_sent(&mut self) -> Option<Sent> {
        self.sent.take()
    }

    /// The classes that may not be sent, a bit each.
    pub fn paused(&self) -> u8 {
        !(self.open as u8)
    }

    /// Whether no packet waits or is in service; a pause frame may be.
    pub fn is_idle(&self) -> bool {
        !matches!(self.serving, Some(Sent::Packet(_))) && self.ready & (FRAME - 1) == 0
    }

    /// Whether a pause frame waits or is in service.
    pub fn is_telling(&self) -> bool {
        self.ready & FRAME != 0 || matches!(self.serving, Some(Sent::Pause(_)))
    }

    /// The highest class in which a packet waits.
    pub fn first_class(&self) -> Option<usize> {
        (self.ready & (FRAME - 1)).checked_ilog2().map(|class| class as usize)
    }

    /// The oldest packet of a class that waits.
    ///
    /// # Panics
    /// When the port has no such class.
    pub fn head(&self, class: usize) -> Option<PacketId> {
        self.queues[class].packets.front().map(|packet| packet.id)
    }

    /// When the last packet of the class that was begun has left, or will have.
    ///
    /// # Panics
    /// When the port has no such class.
    pub fn served(&self, class: usize) -> Time {
        self.queues[class].served
    }

    /// How many classes there are.
    pub fn classes(&self) -> usize {
        self.queues.len()
    }

    /// How long all that is unsent lasts if nothing is paused.
    pub fn unsent(&self, now: Time) -> Span {
        let waiting: Span = self.queues.iter().map(|queue| queue.time).sum();
        waiting + self.line.free_at().saturating_since(now)
    }

    /// How long packets last on its link.
    pub fn serializer(&self) -> &Serializer {
        &self.serializer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Packet, SwitchPort};
    use firstlight_units::Rate;

    fn port(classes: usize) -> PausablePort {
        let serializer = Serializer::new(Rate::from_gbps(10), 1);
        PausablePort::pausable(serializer, Span::from_us(1), &[Discipline::default(); CLASSES][..classes], 1)
    }

    fn ns(n: u64) -> Time {
        Time::ZERO + Span::from_ns(n)
    }

    fn offer(port: &mut PausablePort, id: u32, class: u8, now: u64) -> Option<Time> {
        let mut packet = Packet::default().with_size(1500).with_class(class);
        port.offer(PacketId(id), &mut packet, ns(now)).expect("no limit")
    }

    type At<T> = Vec<(T, u64)>;

    /// Steps the port up to a moment: arrivals, and ends of transmissions, each with its time in ns.
    fn run(port: &mut PausablePort, until: u64) -> (At<u32>, At<Sent>) {
        let (mut arrivals, mut sent) = (vec![], vec![]);
        while let Some(now) = port.pending.filter(|at| *at <= ns(until)) {
            let (id, _) = port.step(now, |_| {});
            arrivals.extend(id.map(|id| (id.0, now.as_ps() / 1000)));
            sent.extend(port.take_sent().map(|sent| (sent, now.as_ps() / 1000)));
        }
        (arrivals, sent)
    }

    #[test]
    fn a_paused_class_waits_after_the_frame_in_service_and_lower_ones_go_on() {
        let mut port = port(2);
        for (id, class) in [(0, 1), (1, 1), (2, 0)] {
            offer(&mut port, id, class, 0);
        }
        assert_eq!(port.pause(0b10, ns(600)), None);
        assert_eq!(port.paused(), 0b10);
        let (arrivals, sent) = run(&mut port, 9000);
        assert_eq!(arrivals, [(0, 2200), (2, 3400)]);
        assert_eq!(sent, [(Sent::Packet(PacketId(0)), 1200), (Sent::Packet(PacketId(2)), 2400)]);
        assert_eq!((port.head(1), port.is_idle(), port.waiting_at(ns(9000))), (Some(PacketId(1)), false, 1));
        // It goes as soon as it may.
        assert_eq!(port.pause(0, ns(10_000)), Some(ns(11_200)));
        assert_eq!(run(&mut port, 20_000).0, [(1, 12_200)]);
        assert!(port.is_idle());
    }

    #[test]
    fn all_classes_paused_stop_all_but_pause_frames() {
        let mut port = port(2);
        assert_eq!(port.pause(u8::MAX, ns(0)), None);
        assert_eq!((offer(&mut port, 0, 0, 0), offer(&mut port, 1, 1, 0)), (None, None));
        assert_eq!(port.tell(1, ns(100)).map(Time::as_ps), Some(151_200));
        assert_eq!(run(&mut port, 5000), (vec![], vec![(Sent::Pause(1), 151)]));
    }

    #[test]
    fn a_pause_frame_goes_before_all_packets_and_tells_the_state_when_it_begins() {
        let mut port = port(8);
        for id in 0..3 {
            offer(&mut port, id, 7, 0);
        }
        assert_eq!(port.tell(0b01, ns(100)), None);
        assert_eq!(port.tell(0b11, ns(200)), None);
        let (arrivals, sent) = run(&mut port, 9000);
        // 64 bytes last 51.2 ns.
        assert_eq!(arrivals, [(0, 2200), (1, 3451), (2, 4651)]);
        assert_eq!(sent[1], (Sent::Pause(0b11), 1251));
        assert_eq!((port.delivered(), port.offered(), port.held()), (3, 3, 0));
        // What changed back while it waited is not told.
        offer(&mut port, 9, 0, 20_000);
        port.tell(0, ns(20_100));
        port.tell(0b11, ns(20_200));
        assert_eq!(run(&mut port, 90_000).1, [(Sent::Packet(PacketId(9)), 21_200)]);
    }
}
