//! One buffer that all ports of a switch share, with dynamic thresholds.
//!
//! Choudhury & Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM ToN 6(2), 1998: a
//! port may hold at most alpha times what is free, alpha (B - Q); with n ports that want more, each gets alpha B / (1 +
//! alpha n) and B / (1 + alpha n) stays free. A packet is taken in when its port's threshold has room for the whole of
//! it and the buffer has, too. Occupancy is all that is not yet sent, to the byte: memory is free as its bytes leave.
//!
//! Queues shrink as time passes, without any event. So the buffer keeps for each port the bytes that the port held when
//! last looked at, which are never too few, and their sum. The test is made against that sum; only if it fails are all
//! ports looked at, so that the sum is exact. A packet is refused by the exact test alone.

use crate::switch_port::{QueueFull, SwitchPort};
use crate::{Packet, PacketId};
use firstlight_units::{Bytes, Time};

/// A switch's shared buffer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SharedBufferConfig {
    /// Size of the buffer (B of the paper).
    pub size: Bytes,
    /// A port holds at most alpha times the free part; 1/65,536 to 65,536.
    pub alpha: f64,
}

/// Alpha is kept in parts of 2^-16.
const ONE: f64 = 65_536.0;

/// The memory that a switch's ports use together, and its limits.
#[derive(Clone, Debug)]
pub struct SharedBuffer {
    size: u64,
    alpha: u64,
    /// Bytes that each port held when last looked at, or more.
    known: Vec<u64>,
    /// The sum of `known`.
    bound: u64,
    peak: u64,
    refused: u64,
}

impl SharedBuffer {
    /// An empty buffer for `ports` ports.
    pub fn new(config: &SharedBufferConfig, ports: usize) -> Self {
        let alpha = (config.alpha * ONE).round() as u64;
        SharedBuffer { size: config.size.get(), alpha, known: vec![0; ports], bound: 0, peak: 0, refused: 0 }
    }

    /// Queues a packet at port `which` of the switch's `ports`, if the buffer and the port both take it. As
    /// [`SwitchPort::offer`].
    ///
    /// # Errors
    /// When either does not; the port counts it as dropped.
    #[inline]
    pub fn offer<P: SwitchPort>(
        &mut self,
        ports: &mut [P],
        which: usize,
        id: PacketId,
        packet: &mut Packet,
        now: Time,
    ) -> Result<Option<Time>, QueueFull> {
        if !self.admits(ports, which, packet.bytes(), now) {
            self.refused += 1;
            ports[which].refuse(packet);
            return Err(QueueFull);
        }
        let event = ports[which].offer(id, packet, now)?;
        let size = on_link(&ports[which], packet.bytes());
        self.known[which] += size;
        self.bound += size;
        if self.bound > self.peak {
            self.update_all(ports, now);
            self.peak = self.peak.max(self.bound);
        }
        Ok(event)
    }

    /// Whether the buffer has room for a packet of this size at port `which` of the switch's `ports`.
    #[inline]
    pub fn admits<P: SwitchPort>(&mut self, ports: &[P], which: usize, size: Bytes, now: Time) -> bool {
        debug_assert_eq!(ports.len(), self.known.len(), "a shared buffer is of one switch, and sees all its ports");
        self.update(ports, which, now);
        let size = on_link(&ports[which], size);
        self.has_room(which, size) || {
            self.update_all(ports, now);
            self.has_room(which, size)
        }
    }

    #[inline]
    fn has_room(&self, which: usize, size: u64) -> bool {
        let Some(free) = self.size.checked_sub(self.bound) else { return false };
        let threshold = (u128::from(self.alpha) * u128::from(free)) >> 16;
        size <= free && u128::from(self.known[which] + size) <= threshold
    }

    #[inline]
    fn update<P: SwitchPort>(&mut self, ports: &[P], which: usize, now: Time) {
        let known = &mut self.known[which];
        if *known > 0 {
            let held = ports[which].backlog(now).get();
            self.bound = self.bound + held - *known;
            *known = held;
        }
    }

    fn update_all<P: SwitchPort>(&mut self, ports: &[P], now: Time) {
        (0..ports.len()).for_each(|which| self.update(ports, which, now));
    }

    /// Most bytes that were ever held.
    pub fn peak(&self) -> Bytes {
        Bytes::new(self.peak)
    }

    /// Packets that the buffer refused, of all ports.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

/// Bytes that a packet takes of a port's link, which is what ports count.
#[inline]
fn on_link(port: &impl SwitchPort, size: Bytes) -> u64 {
    port.link().0.framing().on_link(size).get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClassPort, Discipline, FifoPort, Serializer};
    use firstlight_units::{Rate, Span};
    use proptest::prelude::*;

    fn fifos(n: usize, discipline: Discipline) -> Vec<FifoPort> {
        let serializer = Serializer::new(Rate::from_gbps(10), 1);
        (0..n).map(|_| FifoPort::new(serializer, Span::ZERO, &discipline, 0)).collect()
    }

    fn packet(size: u16) -> Packet {
        Packet::default().with_size(size)
    }

    fn config(size: u64, alpha: f64) -> SharedBufferConfig {
        SharedBufferConfig { size: Bytes::new(size), alpha }
    }

    /// n greedy ports hold alpha B / (1 + alpha n) each, less than a packet short of it.
    #[test]
    fn greedy_ports_get_their_shares() {
        for (alpha, n, share) in [(1.0, 1, 50_000), (1.0, 4, 20_000), (0.5, 2, 25_000), (8.0, 1, 88_888)] {
            let mut ports = fifos(9, Discipline::default());
            let mut buffer = SharedBuffer::new(&config(100_000, alpha), 9);
            for round in 0..3000 {
                let (which, id) = (round % n, PacketId(round as u32));
                let _ = buffer.offer(&mut ports, which, id, &mut packet(100), Time::ZERO);
            }
            for port in &ports[..n] {
                let held = port.backlog(Time::ZERO).get();
                assert!((share - 200..=share + 100).contains(&held), "{held} of {share} with alpha {alpha}, {n} ports");
            }
            let held: u64 = ports.iter().map(|port| port.backlog(Time::ZERO).get()).sum();
            assert_eq!(buffer.peak().get(), held);
            let dropped: u64 = ports.iter().map(FifoPort::dropped).sum();
            assert_eq!(buffer.refused(), dropped);
        }
    }

    /// Any alpha: the buffer itself is never exceeded.
    #[test]
    fn a_huge_alpha_leaves_the_buffer_s_end() {
        let mut ports = fifos(2, Discipline::default());
        let mut buffer = SharedBuffer::new(&config(10_000, 65_536.0), 2);
        let taken =
            (0..9).filter(|n| buffer.offer(&mut ports, n % 2, PacketId(0), &mut packet(1500), Time::ZERO).is_ok());
        assert_eq!(taken.count(), 6);
        assert_eq!((buffer.peak(), buffer.refused()), (Bytes::new(9000), 3));
    }

    /// The lazy buffer refuses the same packets as a buffer that examines all ports each time, and its peak is exact.
    fn agrees<P: SwitchPort>(
        ports: &mut [P],
        steps: &[(u64, usize, u16)],
        config: SharedBufferConfig,
    ) -> Result<(), TestCaseError> {
        let mut buffer = SharedBuffer::new(&config, ports.len());
        let mut events: Vec<Option<Time>> = ports.iter().map(|_| None).collect();
        let (mut now, mut peak) = (Time::ZERO, 0);
        for &(gap, which, size) in steps {
            now += Span::from_ns(gap);
            let which = which % ports.len();
            for (port, event) in ports.iter_mut().zip(&mut events) {
                while let Some(at) = event.filter(|at| *at <= now) {
                    *event = port.step(at, |_| {}).1;
                }
            }
            let held = |ports: &[P]| -> u64 { ports.iter().map(|port| port.backlog(now).get()).sum() };
            let free = config.size.get() - held(ports);
            let own = ports[which].backlog(now).get() + u64::from(size);
            let room = own as f64 <= config.alpha * free as f64 && u64::from(size) <= free;
            let (dropped, refused) = (ports[which].dropped(), buffer.refused());
            let got = buffer.offer(ports, which, PacketId(0), &mut packet(size), now);
            prop_assert_eq!(buffer.refused() == refused, room);
            prop_assert_eq!(got.is_err(), ports[which].dropped() > dropped);
            events[which] = got.ok().flatten().or(events[which]);
            peak = peak.max(if got.is_ok() { held(ports) } else { 0 });
            prop_assert_eq!(buffer.peak().get(), peak);
            prop_assert!(held(ports) <= config.size.get());
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn laziness_changes_nothing(
            steps in prop::collection::vec((0u64..1500, 0usize..4, 40u16..3000), 1..200),
            alpha in prop::sample::select(vec![0.25, 0.5, 1.0, 2.0, 8.0]), size in 3000u64..30_000,
        ) {
            let discipline = Discipline::packets(Some(6), None);
            agrees(&mut fifos(4, discipline), &steps, config(size, alpha))?;
            let serializer = Serializer::new(Rate::from_gbps(10), 1);
            let port: ClassPort = ClassPort::new(serializer, Span::from_us(1), &[discipline; 2], 0);
            agrees(&mut vec![port; 4], &steps, config(size, alpha))?;
        }
    }
}
