//! A port on lossless Ethernet: its classes can be paused, and it requests pauses of the far end (IEEE 802.1Qbb,
//! 802.3x).
//!
//! The port's owner says which classes the far end is to pause ([`PausablePort::request_pause`]). The pause frame then
//! takes its place before all packets, after the frame in service (`pause.rs`). [`PausablePort::take_sent`] returns the
//! frame when its last bit has left; how long the frame is under way is the owner's concern.

use super::ClassPort;
use crate::pause::{Pausable, PauseControl, Sent};
use crate::{PacketId, Serializer};
use firstlight_units::Time;

/// A [`ClassPort`] that can be paused.
pub type PausablePort = ClassPort<Pausable>;

impl PausablePort {
    /// From now on just these classes, a bit each, may not be sent; a frame in service is finished. `Some(t)`: the port
    /// must now be stepped at `t`, which is earlier than it was to be.
    pub fn pause(&mut self, classes: u8, now: Time) -> Option<Time> {
        self.control.pause(classes);
        self.resume(now)
    }

    /// From now on the far end is to pause just these classes. Returns what [`PausablePort::pause`] does.
    pub fn request_pause(&mut self, classes: u8, now: Time) -> Option<Time> {
        self.control.request_pause(classes);
        self.resume(now)
    }

    fn resume(&mut self, now: Time) -> Option<Time> {
        if !self.control.is_serving() {
            self.serve(now);
        }
        self.earlier()
    }

    /// The transmission that the last step ended, if one ended. Each is returned once.
    pub fn take_sent(&mut self) -> Option<Sent> {
        self.control.take_sent()
    }

    /// The classes that may not be sent, a bit each.
    pub fn paused(&self) -> u8 {
        self.control.paused()
    }

    /// Whether no packet waits or is in service; a pause frame may be.
    pub fn is_idle(&self) -> bool {
        !self.control.serves_packet() && self.ready == 0
    }

    /// Whether a pause frame waits or is in service.
    pub fn pause_frame_pending(&self) -> bool {
        self.control.pause_frame_pending()
    }

    /// The highest class in which a packet waits.
    pub fn first_class(&self) -> Option<usize> {
        self.ready.checked_ilog2().map(|class| class as usize)
    }

    /// The oldest packet of a class that waits.
    ///
    /// # Panics
    /// When the port has no such class.
    pub fn head(&self, class: usize) -> Option<PacketId> {
        self.classes[class].queue.front()
    }

    /// When the last packet of the class that was begun has left, or will have.
    ///
    /// # Panics
    /// When the port has no such class.
    pub fn served(&self, class: usize) -> Time {
        self.classes[class].served
    }

    /// How many classes there are.
    pub fn classes(&self) -> usize {
        self.classes.len()
    }

    /// How long packets last on the port's link.
    pub fn serializer(&self) -> &Serializer {
        &self.serializer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CLASSES, Discipline, Packet, SwitchPort};
    use firstlight_units::{Rate, Span};

    fn port(classes: usize) -> PausablePort {
        let serializer = Serializer::new(Rate::from_gbps(10), 1);
        PausablePort::new(serializer, Span::from_us(1), &[Discipline::default(); CLASSES][..classes], 1)
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
        // The packet goes as soon as its class may be sent.
        assert_eq!(port.pause(0, ns(10_000)), Some(ns(11_200)));
        assert_eq!(run(&mut port, 20_000).0, [(1, 12_200)]);
        assert!(port.is_idle());
    }

    #[test]
    fn all_classes_paused_stop_all_but_pause_frames() {
        let mut port = port(2);
        assert_eq!(port.pause(u8::MAX, ns(0)), None);
        assert_eq!((offer(&mut port, 0, 0, 0), offer(&mut port, 1, 1, 0)), (None, None));
        assert_eq!(port.request_pause(1, ns(100)).map(Time::as_ps), Some(151_200));
        assert_eq!(run(&mut port, 5000), (vec![], vec![(Sent::Pause(1), 151)]));
    }

    #[test]
    fn a_pause_frame_goes_before_all_packets_and_says_the_state_when_it_begins() {
        let mut port = port(8);
        for id in 0..3 {
            offer(&mut port, id, 7, 0);
        }
        assert_eq!(port.request_pause(0b01, ns(100)), None);
        assert_eq!(port.request_pause(0b11, ns(200)), None);
        let (arrivals, sent) = run(&mut port, 9000);
        // 64 bytes last 51.2 ns.
        assert_eq!(arrivals, [(0, 2200), (1, 3451), (2, 4651)]);
        assert_eq!(sent[1], (Sent::Pause(0b11), 1251));
        assert_eq!((port.delivered(), port.offered(), port.held()), (3, 3, 0));
        // A change that was taken back while the frame waited is not sent.
        offer(&mut port, 9, 0, 20_000);
        port.request_pause(0, ns(20_100));
        port.request_pause(0b11, ns(20_200));
        assert_eq!(run(&mut port, 90_000).1, [(Sent::Packet(PacketId(9)), 21_200)]);
    }
}
