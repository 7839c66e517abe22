//! HULL's pacer: a host's interface spreads the packets of flows that meet congestion.
//!
//! Alizadeh et al., "Less is More", NSDI'12, section 4. Packets of paced flows go through one rate limiter, the others
//! pass by. Every T_r the limiter's rate follows what came, with a term that empties its queue:
//!
//! ```text
//! R <- (1 - eta) R + eta M_r / T_r + beta Q
//! ```
//!
//! with M_r the bytes that came in the last T_r and Q those that wait. A flow becomes paced with probability p_a when
//! an ACK with ECN-Echo comes back to it, and is no longer once it has sent nothing for T_i. The equation and the
//! constants given as HULL's are quoted at second hand: they have not been compared with the paper's own text. Public
//! copies of pFabric's scripts for ns-2 at 10 Gb/s, which have this pacer and switch it off, agree on eta and p_a and
//! have T_r = 7.2 us, beta = 3000 and T_i = 1 ms: so those here may be of the testbed at 1 Gb/s.
//!
//! Choices: R in bytes per second, Q in bytes, so beta is per second. The bucket is as deep as one packet, whatever its
//! size: a packet goes if all before it are paid for, and is paid for afterwards; each gap is what the rate asks. R
//! starts at zero, and tends to zero while no packets arrive; tokens that are still owed at zero are forgiven. The
//! periods T_r follow one another from time zero. A flow with packets in the limiter stays paced, so none overtakes
//! another.
//!
//! The rate is kept in whole bits per second and tokens are whole: no float decides when a packet goes.

use crate::{Packet, PacketId, Ring, TcpFlags};
use firstlight_units::{Bytes, Rate, Span, Time};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

/// HULL's pacer at each host's interface (NSDI'12). The table's presence turns it on.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema), serde(default))]
pub struct PacerConfig {
    /// T_r: time between two updates of the rate.
    #[cfg_attr(feature = "spec", schemars(extend("x-above" = "0s")))]
    pub period: Span,
    /// eta: weight of what came in the last period.
    #[cfg_attr(feature = "spec", schemars(range(max = 1), extend("exclusiveMinimum" = 0)))]
    pub weight: f64,
    /// beta: how fast the rate grows with what waits, in (bytes/s)/byte per update.
    #[cfg_attr(feature = "spec", schemars(range(min = 0, max = 1_000_000)))]
    pub drain: f64,
    /// p_a: probability that an ACK with ECN-Echo makes its flow a paced one.
    #[cfg_attr(feature = "spec", schemars(range(min = 0, max = 1)))]
    pub chance: f64,
    /// T_i: a flow that sends nothing for this time is no longer paced.
    #[cfg_attr(feature = "spec", schemars(extend("x-above" = "0s")))]
    pub idle: Span,
}

impl Default for PacerConfig {
    fn default() -> Self {
        PacerConfig::HULL
    }
}

impl PacerConfig {
    /// HULL's own parameters.
    pub const HULL: PacerConfig =
        PacerConfig { period: Span::from_us(64), weight: 0.125, drain: 16.0, chance: 0.125, idle: Span::from_ms(10) };
}

/// The pacer's decision on a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacerDecision {
    /// The packet passes: give it to the interface now.
    Pass,
    /// The packet is held. With a time, [`InterfacePacer::release`] must be called at that time; without one, that call
    /// is already pending.
    Held(Option<Time>),
}

/// Counters of a pacer's packets since the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PacerCounts {
    /// Packets that arrived.
    pub offered: u64,
    /// Packets that passed at once.
    pub passed: u64,
    /// Packets that were held and released.
    pub released: u64,
    /// Flows that became paced.
    pub associations: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct PacedPacket {
    id: PacketId,
    size: u16,
    flow: u64,
}

/// A paced flow.
#[derive(Clone, Copy, Debug)]
struct PacedFlow {
    key: u64,
    /// When the last packet of the flow arrived or was released.
    last: Time,
    held: u32,
}

/// The pacer of one host. The order of calls: [`InterfacePacer::release`] at [`InterfacePacer::next`], any other up to
/// then, in the order of time.
#[derive(Clone, Debug)]
pub struct InterfacePacer {
    limiter: Limiter,
    held: Ring<PacedPacket>,
    /// Paced flows in the order of their keys.
    flows: Vec<PacedFlow>,
    idle: Span,
    chance: f64,
    random: Xoshiro256PlusPlus,
    counts: PacerCounts,
}

impl InterfacePacer {
    /// A pacer whose times are stretched `scale`-fold; `seed` seeds which flows it takes.
    ///
    /// # Panics
    /// When `scale` is zero.
    pub fn new(config: &PacerConfig, scale: u32, seed: u64) -> Self {
        InterfacePacer {
            limiter: Limiter::new(config, scale),
            held: Ring::with_capacity(16),
            flows: Vec::new(),
            idle: config.idle * u64::from(scale),
            chance: config.chance,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            counts: PacerCounts::default(),
        }
    }

    /// A packet has come to the host. An ACK with ECN-Echo may make the flow that it answers a paced one. (On a SYN the
    /// flag negotiates ECN and echoes nothing: RFC 3168, section 6.1.1.)
    pub fn on_receive(&mut self, packet: &Packet, now: Time) {
        let echoes = |flags: TcpFlags| flags.has(TcpFlags::ECE) && !flags.has(TcpFlags::SYN);
        let echo = packet.tcp().is_some_and(|segment| echoes(segment.flags()));
        let key = key(packet.src().0, packet.dport(), packet.sport());
        if !echo || self.find(key, now).is_some() || self.uniform() >= self.chance {
            return;
        }
        let idle = self.idle;
        self.flows.retain(|flow| flow.is_alive(idle, now));
        let place = self.flows.partition_point(|flow| flow.key < key);
        self.flows.insert(place, PacedFlow { key, last: now, held: 0 });
        self.counts.associations += 1;
    }

    /// The host sends a packet.
    pub fn offer(&mut self, id: PacketId, packet: &Packet, now: Time) -> PacerDecision {
        self.counts.offered += 1;
        let flow = key(packet.dst().0, packet.sport(), packet.dport());
        let Some(index) = self.find(flow, now) else {
            self.counts.passed += 1;
            return PacerDecision::Pass;
        };
        self.limiter.receive(packet.size(), now);
        self.flows[index].last = now;
        if self.held.is_empty() && self.limiter.is_free() {
            self.limiter.charge(packet.size());
            self.counts.passed += 1;
            return PacerDecision::Pass;
        }
        self.flows[index].held += 1;
        self.limiter.backlog += u64::from(packet.size());
        let alone = self.held.is_empty();
        self.held.push(PacedPacket { id, size: packet.size(), flow });
        PacerDecision::Held(if alone { self.next() } else { None })
    }

    /// When [`InterfacePacer::release`] is to be called; `None` while no packet is held.
    pub fn next(&self) -> Option<Time> {
        (!self.held.is_empty()).then(|| self.limiter.next())
    }

    /// The packet that goes to the interface now, if one is due. Call [`InterfacePacer::next`] afterwards.
    pub fn release(&mut self, now: Time) -> Option<PacketId> {
        self.limiter.advance(now, self.held.is_empty());
        if !self.limiter.is_free() {
            return None;
        }
        let PacedPacket { id, size, flow } = self.held.pop()?;
        self.limiter.charge(size);
        self.limiter.backlog -= u64::from(size);
        let place = self.flows.partition_point(|other| other.key < flow);
        let flow = &mut self.flows[place];
        flow.held -= 1;
        flow.last = now;
        self.counts.released += 1;
        Some(id)
    }

    /// R, as of the last call, on the engine's clock.
    pub fn rate(&self) -> Rate {
        Rate::from_bps(self.limiter.rate)
    }

    /// Q: bytes that are held.
    pub fn backlog(&self) -> Bytes {
        Bytes::new(self.limiter.backlog)
    }

    /// Packets that are held: `offered = passed + released + held`.
    pub fn held(&self) -> u64 {
        u64::from(self.held.len())
    }

    /// The counters so far.
    pub fn counts(&self) -> PacerCounts {
        self.counts
    }

    /// The place of a flow that is paced at `now`.
    fn find(&self, key: u64, now: Time) -> Option<usize> {
        let index = self.flows.binary_search_by_key(&key, |flow| flow.key).ok()?;
        self.flows[index].is_alive(self.idle, now).then_some(index)
    }

    /// A random number, uniform between 0 and 1.
    fn uniform(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

impl PacedFlow {
    fn is_alive(&self, idle: Span, now: Time) -> bool {
        self.held > 0 || now.saturating_since(self.last) < idle
    }
}

/// The key of a flow that leaves this host.
fn key(dst: u16, sport: u16, dport: u16) -> u64 {
    u64::from(dst) << 32 | u64::from(sport) << 16 | u64::from(dport)
}

/// The rate and its tokens. A token is 10^-12 bit: what one bit per second earns in a picosecond.
#[derive(Clone, Debug)]
struct Limiter {
    /// R in bits per second.
    rate: u64,
    /// Up to when tokens have been counted.
    at: Time,
    /// The next update of the rate.
    update: Time,
    period: Span,
    /// Bytes that have arrived since the last update of the rate.
    received: u64,
    /// Bytes that wait.
    backlog: u64,
    /// Tokens that are owed for packets that have gone.
    debt: u128,
    /// eta in parts of 2^-32.
    weight: u128,
    /// beta in bits per second for each byte, in parts of 2^-32.
    drain: u128,
}

const FRACTION: u32 = 32;
const TOKENS_PER_BYTE: u128 = 8_000_000_000_000;

impl Limiter {
    fn new(config: &PacerConfig, scale: u32) -> Self {
        let fixed = |value: f64| (value * f64::from(FRACTION).exp2()).round() as u128;
        let period = config.period * u64::from(scale);
        Limiter {
            rate: 0,
            at: Time::ZERO,
            update: Time::ZERO + period,
            period,
            received: 0,
            backlog: 0,
            debt: 0,
            weight: fixed(config.weight),
            drain: fixed(config.drain * 8.0) / u128::from(scale),
        }
    }

    fn is_free(&self) -> bool {
        self.debt == 0
    }

    /// Charges a packet that leaves.
    fn charge(&mut self, size: u16) {
        self.debt = u128::from(size) * TOKENS_PER_BYTE;
    }

    /// Counts a packet that arrives.
    fn receive(&mut self, size: u16, now: Time) {
        self.advance(now, self.backlog == 0);
        self.received += u64::from(size);
    }

    /// When the debt is paid, or when the rate changes if that is earlier.
    fn next(&self) -> Time {
        if self.rate == 0 && self.debt > 0 {
            return self.update;
        }
        let span = self.debt.div_ceil(u128::from(self.rate.max(1)));
        u64::try_from(span)
            .map_or(self.update, |span| self.update.min(self.at + Span::from_ps(span.min(self.period.as_ps()))))
    }

    /// Brings rate and debt up to `now`; `idle` when nothing waits.
    fn advance(&mut self, now: Time, idle: bool) {
        while self.update <= now {
            if idle && self.rate == 0 && self.received == 0 {
                self.debt = 0;
                let periods = now.saturating_since(self.update).as_ps() / self.period.as_ps() + 1;
                self.update += self.period * periods;
                break;
            }
            self.pay(self.update);
            self.update_rate();
            self.update += self.period;
        }
        self.pay(now);
    }

    fn pay(&mut self, until: Time) {
        let span = until.saturating_since(self.at).as_ps();
        self.debt = self.debt.saturating_sub(u128::from(self.rate) * u128::from(span));
        self.at = self.at.max(until);
    }

    /// R <- (1 - eta) R + eta M_r / T_r + beta Q; what fades is rounded up, so that it fades to nothing.
    fn update_rate(&mut self) {
        let came = u128::from(self.received) * TOKENS_PER_BYTE / u128::from(self.period.as_ps());
        let fades = (u128::from(self.rate) * self.weight).div_ceil(1 << FRACTION);
        let grows = (came * self.weight + u128::from(self.backlog) * self.drain) >> FRACTION;
        self.rate = (u128::from(self.rate) - fades + grows) as u64;
        self.received = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FlowTuple, HostId, TcpHeader};
    use proptest::prelude::*;

    impl InterfacePacer {
        /// Whether packets like this one are paced at `now`.
        fn is_paced(&self, packet: &Packet, now: Time) -> bool {
            self.find(key(packet.dst().0, packet.sport(), packet.dport()), now).is_some()
        }
    }

    const ALL: PacerConfig = PacerConfig { chance: 1.0, ..PacerConfig::HULL };

    fn us(n: u64) -> Time {
        Time::ZERO + Span::from_us(n)
    }

    fn data(flow: u16, size: u16) -> Packet {
        let tuple = FlowTuple { dst: HostId(1), sport: flow, dport: 80, ..FlowTuple::default() };
        Packet::new_tcp(tuple, 0, size, TcpHeader::default())
    }

    fn echo(flow: u16) -> Packet {
        answer(flow, TcpFlags::ACK | TcpFlags::ECE)
    }

    fn answer(flow: u16, flags: TcpFlags) -> Packet {
        let tuple = FlowTuple { src: HostId(1), sport: 80, dst: HostId(0), dport: flow };
        Packet::new_tcp(tuple, 52, 0, TcpHeader { flags, ..TcpHeader::default() })
    }

    /// Releases what is due by `now`: the times.
    fn run(pacer: &mut InterfacePacer, now: Time) -> Vec<Time> {
        let mut released = Vec::new();
        while let Some(at) = pacer.next().filter(|at| *at <= now) {
            released.extend(pacer.release(at).map(|_| at));
        }
        released
    }

    #[test]
    fn the_rate_by_hand() {
        let mut pacer = InterfacePacer::new(&ALL, 1, 0);
        pacer.on_receive(&echo(5), us(0));
        assert_eq!(pacer.offer(PacketId(0), &data(5, 8000), us(1)), PacerDecision::Pass);
        // The packet's 8,000 bytes are owed, and the rate is zero until the first update.
        assert_eq!(pacer.offer(PacketId(1), &data(5, 8000), us(1)), PacerDecision::Held(Some(us(64))));
        assert_eq!(pacer.offer(PacketId(2), &data(5, 8000), us(1)), PacerDecision::Held(None));
        assert_eq!(pacer.release(us(64)), None);
        // eta M / T = 24,000 B / 8 / 64 us = 375 Mb/s; beta Q = 16 * 16,000 * 8 = 2.048 Mb/s.
        assert_eq!(pacer.rate(), Rate::from_bps(377_048_000));
        // By 128 us 377.048 Mb/s have paid 3,016.384 bytes; then 7/8 of the rate and beta Q again.
        assert_eq!((pacer.next(), pacer.release(us(128))), (Some(us(128)), None));
        assert_eq!(pacer.rate(), Rate::from_bps(329_917_000 + 2_048_000));
        // By 192 us 2,655.72 bytes more; at 7/8 of that and beta Q 2,327.896 are left, which last 63.77 us.
        assert_eq!(pacer.release(us(192)), None);
        assert_eq!(pacer.rate().as_bps(), 290_469_375 + 2_048_000);
        let paid_at = us(192) + Span::from_ps(63_664_908);
        let due = pacer.next().unwrap();
        assert!(due >= paid_at - Span::from_ns(5) && due <= paid_at + Span::from_ns(5), "{due}");
        assert_eq!(pacer.release(due), Some(PacketId(1)));
    }

    /// At a constant load the rate becomes that load, whatever the load was before, and what comes goes.
    #[test]
    fn the_rate_converges_to_the_load() {
        let mut pacer = InterfacePacer::new(&ALL, 1, 0);
        pacer.on_receive(&echo(5), us(0));
        let mut now = us(0);
        // 1,500 bytes every 12, 3 and 24 us: 1,000, 4,000 and 500 Mb/s.
        for (gap_ns, mbps) in [(12_000, 1000.0), (3000, 4000.0), (24_000, 500.0)] {
            let packets = 200_000_000 / gap_ns;
            let (mut rates, mut gone) = (0.0, 0);
            for n in 0..packets {
                now += Span::from_ns(gap_ns);
                run(&mut pacer, now);
                let _ = pacer.offer(PacketId(0), &data(5, 1500), now);
                if n == packets / 2 {
                    gone = pacer.counts().passed + pacer.counts().released;
                }
                rates += if n > packets / 2 { pacer.rate().as_bps() as f64 / 1e6 } else { 0.0 };
            }
            let mean = rates * 2.0 / packets as f64;
            let rate = pacer.rate().as_bps() as f64 / 1e6;
            let left = pacer.counts().passed + pacer.counts().released - gone;
            assert!((mean / mbps - 1.0).abs() < 0.02, "{mean} Mb/s in the mean at a load of {mbps}");
            // A period holds a packet more or less: eta of that.
            assert!((rate - mbps).abs() < 0.125 * 1500.0 * 8.0 / 64.0 * 4.0, "{rate} Mb/s at a load of {mbps}");
            assert!(left.abs_diff(packets / 2) <= packets / 200, "{left} of {} packets left", packets / 2);
        }
    }

    /// A burst leaves spread out: the gaps are what the rate of that moment asks.
    #[test]
    fn a_burst_is_spread() {
        let mut pacer = InterfacePacer::new(&ALL, 1, 0);
        pacer.on_receive(&echo(5), us(0));
        let burst = 64;
        (0..burst).for_each(|n| _ = pacer.offer(PacketId(n), &data(5, 1500), us(10)));
        let mut last = us(10);
        let mut gaps = Vec::new();
        while let Some(at) = pacer.next() {
            let rate = pacer.rate();
            if pacer.release(at).is_some() {
                gaps.push((at - last, rate));
                last = at;
            }
        }
        assert_eq!(gaps.len() as u32, burst - 1);
        // No two leave closer than the highest rate allows: eta M / T plus what beta Q adds until it has faded.
        let highest = gaps.iter().map(|gap| gap.1).max().unwrap();
        let shortest = gaps.iter().map(|gap| gap.0).min().unwrap();
        assert!(shortest >= highest.tx_time(Bytes::new(1500)), "{shortest} at {highest}");
        assert!(highest < Rate::from_bps(1_800_000_000), "{highest}");
    }

    #[test]
    fn flows_come_and_go() {
        let mut pacer = InterfacePacer::new(&ALL, 1, 0);
        pacer.on_receive(&answer(5, TcpFlags::ACK | TcpFlags::ECE | TcpFlags::SYN), us(0));
        pacer.on_receive(&answer(5, TcpFlags::ACK), us(0));
        assert!(!pacer.is_paced(&data(5, 1500), us(0)));
        pacer.on_receive(&echo(5), us(0));
        assert!(pacer.is_paced(&data(5, 1500), us(9999)) && !pacer.is_paced(&data(6, 1500), us(0)));
        assert!(!pacer.is_paced(&data(5, 1500), us(10_000)));
        let _ = pacer.offer(PacketId(0), &data(5, 1500), us(9000));
        assert!(pacer.is_paced(&data(5, 1500), us(18_999)) && !pacer.is_paced(&data(5, 1500), us(19_000)));
        // Paced flows whose time is over leave their places.
        (0..100).for_each(|n| pacer.on_receive(&echo(100 - n), us(20_000 * u64::from(n))));
        assert!(pacer.flows.len() <= 2);
    }

    /// The first packet is not overtaken by a packet that arrives when the first one may go, nor by one that arrives
    /// when the flow's time seems over.
    #[test]
    fn nothing_overtakes_a_held_packet() {
        let mut pacer = InterfacePacer::new(&PacerConfig { idle: Span::from_us(50), ..ALL }, 1, 0);
        pacer.on_receive(&echo(5), us(0));
        assert_eq!(pacer.offer(PacketId(0), &data(5, 8000), us(1)), PacerDecision::Pass);
        assert_eq!(pacer.offer(PacketId(1), &data(5, 8000), us(1)), PacerDecision::Held(Some(us(64))));
        assert_eq!((pacer.release(us(64)), pacer.release(us(128))), (None, None));
        assert_eq!(pacer.offer(PacketId(2), &data(5, 100), us(130)), PacerDecision::Held(None));
        let due = loop {
            let next = pacer.next().unwrap();
            let mut other = pacer.clone();
            if other.release(next).is_some() {
                break next;
            }
            pacer = other;
        };
        assert_eq!(pacer.offer(PacketId(3), &data(5, 100), due), PacerDecision::Held(None));
        assert_eq!(pacer.release(due), Some(PacketId(1)));
    }

    #[test]
    fn one_echo_in_eight_takes_a_flow() {
        let mut pacer = InterfacePacer::new(&PacerConfig::HULL, 1, 3);
        (0..8000).for_each(|flow| pacer.on_receive(&echo(flow), us(0)));
        // 1,000 expected, standard deviation 30.
        assert!(pacer.counts().associations.abs_diff(1000) < 4 * 30, "{}", pacer.counts().associations);
    }

    #[test]
    fn a_stretched_pacer_is_the_same_but_slower() {
        let trace = |scale: u32| -> Vec<u64> {
            let mut pacer = InterfacePacer::new(&ALL, scale, 0);
            pacer.on_receive(&echo(5), us(0));
            (0..50).for_each(|n| _ = pacer.offer(PacketId(n), &data(5, 1500), us(u64::from(scale))));
            run(&mut pacer, us(10_000_000)).iter().map(|at| at.as_ps() / u64::from(scale) / 10_000).collect()
        };
        let (plain, stretched) = (trace(1), trace(20));
        assert_eq!(plain.len(), 49);
        assert!(plain.iter().zip(&stretched).all(|(a, b)| a.abs_diff(*b) <= 1), "{plain:?} {stretched:?}");
    }

    proptest! {
        #[test]
        fn no_packet_is_lost_or_overtaken(
            ops in prop::collection::vec((0u64..300, 0u16..4, 40u16..9000, any::<bool>()), 1..300),
            chance in 0.0..1.0f64,
        ) {
            let mut pacer = InterfacePacer::new(&PacerConfig { chance, ..PacerConfig::HULL }, 1, 9);
            let (mut now, mut order) = (us(0), vec![Vec::new(); 4]);
            let mut sent: Vec<(PacketId, u16)> = Vec::new();
            for (n, (gap, flow, size, marked)) in ops.into_iter().enumerate() {
                now += Span::from_us(gap);
                while let Some(at) = pacer.next().filter(|at| *at <= now) {
                    if let Some(id) = pacer.release(at) {
                        order[usize::from(sent[id.index()].1)].push(id);
                    }
                }
                if marked {
                    pacer.on_receive(&echo(flow), now);
                }
                let id = PacketId(n as u32);
                sent.push((id, flow));
                if pacer.offer(id, &data(flow, size), now) == PacerDecision::Pass {
                    order[usize::from(flow)].push(id);
                }
                let counts = pacer.counts();
                prop_assert_eq!(counts.offered, counts.passed + counts.released + pacer.held());
                prop_assert_eq!(pacer.next().is_some(), pacer.held() > 0);
                prop_assert!(pacer.next().is_none_or(|at| at >= now));
            }
            prop_assert!(order.iter().all(|ids| ids.is_sorted()));
        }
    }
}
