//! A FIFO port: tail-drop queue, transmitter and link in one.
//!
//! At a constant rate a packet's departure is known when it is queued, so the port keeps one ring of arrival times and
//! needs one event per packet, whatever the queue holds: the first arrival at the far end. How many packets wait at a
//! given moment is read off the same ring, by a pointer that follows time lazily.
//!
//! Its [`Discipline`] decides what it drops and marks. A discipline of two numbers of packets (limit and threshold)
//! sees a packet only when more packets wait than ever before, or than the threshold; a discipline that measures bytes
//! or averages sees each packet.

use crate::discipline::{Discipline, Policer, QueueState, Verdict};
use crate::line::Flight;
use crate::switch_port::{QueueFull, SwitchPort};
use crate::{Packet, PacketId, Ring, Serializer};
use firstlight_units::{Bytes, Span, Time};

/// The port. Its first cache line is all that a packet touches which need not wait.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct FifoPort {
    /// When the transmitter has sent all packets that it was given.
    busy: Time,
    delay: Span,
    /// Packets waiting, in service or in flight.
    flights: Ring<Flight>,
    accepted: u64,
    /// How many of the last packets in `flights` had not begun service when last looked at: too many, unless brought up
    /// to date.
    waiting: u32,
    /// While no more than this many wait, there is nothing to drop, to mark or to note; below zero, each packet is
    /// looked at.
    calm: i32,
    /// How long packets last. A packet that need not wait touches nothing behind the first word of this.
    serializer: Serializer,
    /// The longest queue; this field and those after it are accessed seldom.
    peak: u32,
    dropped: u64,
    marked: u64,
    policer: Policer,
}

const _: () = assert!(size_of::<FifoPort>() == 128, "a port is two cache lines");

impl FifoPort {
    /// A port with this serialization, this (already stretched) propagation delay and this discipline, whose random
    /// numbers `seed` seeds.
    ///
    /// # Panics
    /// When [`Discipline::check`] fails.
    pub fn new(serializer: Serializer, delay: Span, discipline: &Discipline, seed: u64) -> Self {
        let policer = Policer::new(discipline, &serializer, seed);
        FifoPort {
            busy: Time::ZERO,
            delay,
            flights: Ring::with_capacity(8),
            accepted: 0,
            waiting: 0,
            calm: if policer.sees_every_packet() { -1 } else { 0 },
            serializer,
            peak: 0,
            dropped: 0,
            marked: 0,
            policer,
        }
    }

    /// Applies the discipline to a packet that finds the transmitter busy: counts it, drops it or marks it.
    #[inline(never)]
    fn attend(&mut self, packet: &mut Packet, now: Time) -> Result<(), QueueFull> {
        if self.calm < 0 {
            self.inspect(packet, now)?;
        } else {
            self.waiting = self.waiting_at(now);
            let verdict = self.policer.admit_waiting(packet.ecn(), self.waiting);
            self.carry_out(verdict, packet)?;
        }
        self.peak = self.peak.max(self.waiting + 1);
        if self.calm >= 0 {
            self.calm = self.peak.min(self.policer.calm()).min(i32::MAX as u32) as i32;
        }
        Ok(())
    }

    /// Admits a packet under a discipline that needs to see every packet.
    #[inline(never)]
    fn inspect(&mut self, packet: &mut Packet, now: Time) -> Result<(), QueueFull> {
        self.waiting = self.waiting_at(now);
        let at_once = self.busy <= now;
        let state = QueueState {
            now,
            waiting: self.waiting,
            backlog: self.busy.saturating_since(now),
            time: self.serializer.time(packet.size()),
            at_once,
            empty_since: at_once.then_some(self.busy),
        };
        let verdict = self.policer.admit(packet.ecn(), &state);
        self.carry_out(verdict, packet)?;
        let verdict = self.policer.depart(packet.ecn(), packet.size(), self.busy.max(now) + state.time);
        self.carry_out(verdict, packet)
    }

    #[inline]
    fn carry_out(&mut self, verdict: Verdict, packet: &mut Packet) -> Result<(), QueueFull> {
        match verdict {
            Verdict::Pass => {}
            Verdict::Mark => {
                self.marked += u64::from(packet.mark());
            }
            Verdict::Drop => {
                self.dropped += 1;
                return Err(QueueFull);
            }
        }
        Ok(())
    }

    /// Takes the packet that arrives at the far end now, and returns when the next one arrives.
    ///
    /// # Panics
    /// When no packet is in flight.
    #[inline]
    pub fn arrive(&mut self) -> (PacketId, Option<Time>) {
        let flight = self.flights.pop().expect("an arrival is pending only while a packet is in flight");
        let next = self.flights.head().arrives;
        (flight.id, (!self.flights.is_empty()).then_some(next))
    }

    /// When the last bit of the newest packet leaves the transmitter, or left it.
    #[inline]
    pub fn departure(&self) -> Time {
        self.busy
    }

    /// How long packets last on its link.
    pub fn serializer(&self) -> &Serializer {
        &self.serializer
    }

    /// Propagation from the port to the far end of its link.
    pub fn delay(&self) -> Span {
        self.delay
    }
}

impl SwitchPort for FifoPort {
    #[inline(always)]
    fn offer(&mut self, id: PacketId, packet: &mut Packet, now: Time) -> Result<Option<Time>, QueueFull> {
        let start = if self.busy <= now {
            self.waiting = 0;
            if self.calm < 0 {
                self.inspect(packet, now)?;
            }
            now
        } else {
            if self.waiting as i32 >= self.calm {
                self.attend(packet, now)?;
            }
            self.waiting += 1;
            self.busy
        };
        self.busy = start + self.serializer.time(packet.size());
        self.accepted += 1;
        let arrives = self.busy + self.delay;
        let alone = self.flights.is_empty();
        self.flights.push(Flight { arrives, id });
        Ok(alone.then_some(arrives))
    }

    #[inline]
    fn step(&mut self, _now: Time, _mark: impl FnMut(PacketId)) -> (Option<PacketId>, Option<Time>) {
        let (id, next) = self.arrive();
        (Some(id), next)
    }

    #[inline]
    fn first(&self) -> PacketId {
        self.flights.head().id
    }

    #[inline]
    fn first_slot(&self) -> &impl Sized {
        self.flights.head()
    }

    fn link(&self) -> (Serializer, Span) {
        (self.serializer, self.delay)
    }

    fn refuse(&mut self, _packet: &Packet) {
        self.dropped += 1;
    }

    /// A waiting packet starts when the one before it departs. If that one has already arrived, it has started.
    #[inline]
    fn waiting_at(&self, now: Time) -> u32 {
        let len = self.flights.len();
        let mut waiting = self.waiting.min(len);
        while waiting > 0 {
            let before = len - waiting;
            if before > 0 && self.flights.get(before - 1).arrives > now + self.delay {
                break;
            }
            waiting -= 1;
        }
        waiting
    }

    #[inline]
    fn backlog(&self, now: Time) -> Bytes {
        self.serializer.bytes_in(self.busy.saturating_since(now))
    }

    fn offered(&self) -> u64 {
        self.accepted + self.dropped
    }

    fn delivered(&self) -> u64 {
        self.accepted - self.held()
    }

    fn dropped(&self) -> u64 {
        self.dropped
    }

    fn marked(&self) -> u64 {
        self.marked
    }

    fn held(&self) -> u64 {
        u64::from(self.flights.len())
    }

    fn peak(&self) -> u64 {
        u64::from(self.peak)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ecn;
    use firstlight_units::Rate;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn port(queue: Option<u32>, ecn: Option<u32>) -> FifoPort {
        let serializer = Serializer::new(Rate::from_gbps(10), 1);
        FifoPort::new(serializer, Span::from_us(1), &Discipline::packets(queue, ecn), 0)
    }

    fn ns(n: u64) -> Time {
        Time::ZERO + Span::from_ns(n)
    }

    fn packet(size: u16) -> Packet {
        Packet::default().with_size(size).with_ecn(Ecn::Ect0)
    }

    #[test]
    fn a_hot_port_is_one_cache_line() {
        assert!(std::mem::offset_of!(FifoPort, calm) <= 60 && align_of::<FifoPort>() == 64);
        assert!(std::mem::offset_of!(FifoPort, serializer) <= 56);
    }

    #[test]
    fn serialization_and_propagation_to_the_picosecond() {
        let mut port = port(None, None);
        // 1500 bytes at 10 Gb/s last 1.2 us; 1 us of propagation.
        assert_eq!(port.offer(PacketId(0), &mut packet(1500), ns(0)), Ok(Some(ns(2200))));
        assert_eq!(port.offer(PacketId(1), &mut packet(1500), ns(100)), Ok(None));
        assert_eq!(port.arrive(), (PacketId(0), Some(ns(3400))));
        assert_eq!(port.arrive(), (PacketId(1), None));
        assert_eq!(port.offer(PacketId(2), &mut packet(40), ns(5000)), Ok(Some(ns(5000 + 32 + 1000))));
    }

    #[test]
    fn the_packet_in_service_does_not_wait() {
        let mut port = port(Some(1), None);
        assert!(port.offer(PacketId(0), &mut packet(1500), ns(0)).is_ok());
        assert!(port.offer(PacketId(1), &mut packet(1500), ns(0)).is_ok());
        assert_eq!(port.offer(PacketId(2), &mut packet(1500), ns(1199)), Err(QueueFull));
        assert!(port.offer(PacketId(3), &mut packet(1500), ns(1200)).is_ok(), "the second one is in service now");
        assert_eq!((port.offered(), port.delivered(), port.dropped(), port.held()), (4, 0, 1, 3));
    }

    #[test]
    fn marks_beyond_the_threshold_and_spares_those_without_ecn() {
        let mut port = port(Some(9), Some(1));
        let mut marks = [false; 4];
        for mark in &mut marks {
            let mut p = packet(1500);
            port.offer(PacketId(0), &mut p, ns(0)).unwrap();
            *mark = p.ecn() == Ecn::Ce;
        }
        assert_eq!(marks, [false, false, true, true]);
        let mut plain = Packet::default().with_size(1500);
        port.offer(PacketId(0), &mut plain, ns(0)).unwrap();
        assert_eq!((plain.ecn(), port.marked(), port.peak()), (Ecn::NotEct, 2, 4));
    }

    /// A model of the same port: a queue of (start, end) of each packet's service.
    struct Model {
        services: VecDeque<(u64, u64)>,
    }

    proptest! {
        #[test]
        fn agrees_with_a_queue_of_services(
            steps in prop::collection::vec((0u64..4000, 40u16..9000), 1..200),
            limit in 0u32..6, ecn in prop::option::of(0u32..6), delay in 0u64..9000,
        ) {
            let mut port = port(Some(limit), ecn);
            port.delay = Span::from_ns(delay);
            let mut model = Model { services: VecDeque::new() };
            let (mut now, mut peak, mut arrivals) = (0, 0, VecDeque::new());
            for (gap, size) in steps {
                now += gap * 1000;
                while arrivals.front().is_some_and(|at| *at <= now) {
                    arrivals.pop_front();
                    port.arrive();
                }
                let end = model.services.back().map_or(0, |s| s.1);
                let waits = model.services.iter().filter(|s| s.0 > now).count() as u32;
                prop_assert_eq!(port.waiting_at(Time::from_ps(now)), waits);
                let fits = end <= now || waits < limit;
                let alone = arrivals.is_empty();
                let mut packet = packet(size);
                let got = port.offer(PacketId(0), &mut packet, Time::from_ps(now));
                prop_assert_eq!(got.is_ok(), fits);
                let marked = fits && end > now && ecn.is_some_and(|ecn| waits + 1 > ecn);
                prop_assert_eq!(packet.ecn() == Ecn::Ce, marked);
                peak = peak.max(if fits && end > now { waits + 1 } else { 0 });
                prop_assert_eq!(port.peak(), u64::from(peak));
                if fits {
                    let start = end.max(now);
                    let done = start + u64::from(size) * 800;
                    model.services.push_back((start, done));
                    arrivals.push_back(done + delay * 1000);
                    prop_assert_eq!(got.unwrap(), alone.then(|| Time::from_ps(done + delay * 1000)));
                }
            }
        }
    }
}
