//! A host's interface with QCN: a queue and a rate of its own for each flow that was notified of congestion.
//!
//! IEEE 802.1Qau-2010, clause 31 (the end station). A flow's packets pass as long as it is not limited. From its first
//! notification on they wait, in their order, until those before them are paid for at the flow's rate; other flows pass
//! them. A flow that has its line's rate again, and no packet waiting, is no longer limited.
//!
//! Choices: a flow is its destination and ports. The bucket is as deep as one packet, whatever its size, as in HULL's
//! pacer (`pacer.rs`): each gap is what the rate asks, and time in which nothing is sent earns nothing. Tokens that are
//! owed when the rate changes are paid at the new rate.

use super::{QcnConfig, ReactionPoint};
use crate::{PacerDecision, Packet, PacketId, Ring};
use firstlight_units::{Rate, Span, Time};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A flow that leaves a host: its destination, the sender's port and the receiver's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct FlowKey {
    /// The host that receives.
    pub dst: u16,
    /// The port that it leaves from.
    pub sport: u16,
    /// The port that it goes to.
    pub dport: u16,
}

/// A change of a flow's rates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateChange {
    /// When the rates changed, on the engine's clock.
    pub at: Time,
    /// The flow whose rates changed.
    pub flow: FlowKey,
    /// The rate from now on.
    pub current: Rate,
    /// The target rate, which the current rate approaches.
    pub target: Rate,
}

/// Counters of a host's interface since the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LimiterCounts {
    /// Packets that hosts' stacks handed in.
    pub offered: u64,
    /// Packets that passed at once.
    pub passed: u64,
    /// Packets that waited and went.
    pub released: u64,
    /// Most packets of all flows that waited at one moment.
    pub peak: u32,
    /// Notifications received.
    pub notifications: u64,
    /// The sum of their feedback.
    pub feedback: u64,
    /// Times that a flow became limited.
    pub limited: u64,
    /// Changes of rates.
    pub changes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct LimitedPacket {
    id: PacketId,
    size: u16,
}

/// A limited flow.
#[derive(Clone, Debug)]
struct LimitedFlow {
    key: FlowKey,
    point: ReactionPoint,
    held: Ring<LimitedPacket>,
    /// Up to when tokens have been counted.
    at: Time,
    /// Tokens that are owed for packets that have gone. A token is 10^-12 bit: what a bit per second earns in a
    /// picosecond.
    debt: u128,
    since: Time,
}

const TOKENS_PER_BYTE: u128 = 8_000_000_000_000;

/// The limited flows of one host. The order of calls: [`RateLimiters::release`] at [`RateLimiters::next`], until it is
/// empty-handed; any other up to then, in the order of time.
#[derive(Clone, Debug)]
pub struct RateLimiters {
    config: QcnConfig,
    line: Rate,
    scale: u32,
    /// The limited flows in the order of their keys.
    flows: Vec<LimitedFlow>,
    next: Option<Time>,
    held: u32,
    random: Xoshiro256PlusPlus,
    counts: LimiterCounts,
    /// How long flows were limited that are so no longer.
    limited: Span,
    /// What changed, and how many changes to keep.
    changes: Vec<RateChange>,
    keep: usize,
}

impl RateLimiters {
    /// Of a host whose link has the rate `line`; times are stretched `scale`-fold, and `random` draws the cycles'
    /// jitter.
    ///
    /// # Panics
    /// When `scale` is zero.
    pub fn new(config: &QcnConfig, line: Rate, scale: u32, random: Xoshiro256PlusPlus) -> Self {
        assert!(scale > 0, "no time is left at a scale of zero");
        RateLimiters {
            config: *config,
            line,
            scale,
            flows: vec![],
            next: None,
            held: 0,
            random,
            counts: LimiterCounts::default(),
            limited: Span::ZERO,
            changes: vec![],
            keep: 0,
        }
    }

    /// Keeps the first `most` changes of rates from now on.
    pub fn keep_changes(&mut self, most: usize) {
        self.keep = most;
    }

    /// A notification with this feedback comes for a flow.
    pub fn on_notification(&mut self, flow: FlowKey, feedback: u8, now: Time) {
        self.counts.notifications += 1;
        self.counts.feedback += u64::from(feedback);
        let index = self.flows.binary_search_by_key(&flow, |limited| limited.key).unwrap_or_else(|index| {
            self.counts.limited += 1;
            let point = ReactionPoint::new(&self.config, self.line);
            let held = Ring::with_capacity(16);
            self.flows.insert(index, LimitedFlow { key: flow, point, held, at: now, debt: 0, since: now });
            index
        });
        let limited = &mut self.flows[index];
        limited.pay(now, self.scale);
        limited.point.on_feedback(&self.config, feedback, self.scale, now);
        self.note(index, now);
        self.look_ahead();
    }

    /// The host sends a packet. [`RateLimiters::next`] may change with it.
    #[inline]
    pub fn offer(&mut self, id: PacketId, packet: &Packet, now: Time) -> PacerDecision {
        self.counts.offered += 1;
        if self.flows.is_empty() {
            self.counts.passed += 1;
            return PacerDecision::Pass;
        }
        self.offer_to_flow(id, packet, now)
    }

    fn offer_to_flow(&mut self, id: PacketId, packet: &Packet, now: Time) -> PacerDecision {
        let key = FlowKey { dst: packet.dst().0, sport: packet.sport(), dport: packet.dport() };
        let Ok(index) = self.flows.binary_search_by_key(&key, |limited| limited.key) else {
            self.counts.passed += 1;
            return PacerDecision::Pass;
        };
        let limited = &mut self.flows[index];
        limited.pay(now, self.scale);
        if limited.held.is_empty() && limited.debt == 0 {
            self.counts.passed += 1;
            self.charge(index, packet.size(), now);
            self.look_ahead();
            return PacerDecision::Pass;
        }
        let alone = limited.held.is_empty();
        limited.held.push(LimitedPacket { id, size: packet.size() });
        self.held += 1;
        self.counts.peak = self.counts.peak.max(self.held);
        if alone {
            self.look_ahead();
        }
        PacerDecision::Held(self.next)
    }

    /// When [`RateLimiters::release`] is to be called; `None` while no flow is limited.
    #[inline]
    pub fn next(&self) -> Option<Time> {
        self.next
    }

    /// Ends the timers' cycles that are due, and gives a packet that goes now, if one is due. Call it until it gives
    /// none.
    pub fn release(&mut self, now: Time) -> Option<PacketId> {
        while let Some(index) = self.flows.iter().position(|limited| limited.next(self.scale) <= now) {
            let limited = &mut self.flows[index];
            limited.pay(now, self.scale);
            if limited.point.timer() <= now {
                limited.point.on_timer(&self.config, self.scale, &mut self.random);
                self.note(index, now);
                self.end_if_over(index, now);
                continue;
            }
            let LimitedPacket { id, size } = limited.held.pop().expect("what is due and not the timer is a packet");
            self.held -= 1;
            self.counts.released += 1;
            self.charge(index, size, now);
            return Some(id);
        }
        self.look_ahead();
        None
    }

    /// Charges a packet of a limited flow that owes nothing.
    fn charge(&mut self, index: usize, size: u16, now: Time) {
        let limited = &mut self.flows[index];
        let before = limited.point.current();
        limited.debt = u128::from(size) * TOKENS_PER_BYTE;
        limited.point.on_sent(&self.config, size, &mut self.random);
        if limited.point.current() != before {
            self.note(index, now);
        }
        self.end_if_over(index, now);
    }

    fn end_if_over(&mut self, index: usize, now: Time) {
        let limited = &self.flows[index];
        if limited.point.is_over() && limited.held.is_empty() {
            self.limited += now - limited.since;
            self.flows.remove(index);
        }
    }

    fn note(&mut self, index: usize, at: Time) {
        self.counts.changes += 1;
        if self.changes.len() < self.keep {
            let LimitedFlow { key: flow, point, .. } = &self.flows[index];
            let (current, target) = (point.current(), point.target());
            self.changes.push(RateChange { at, flow: *flow, current, target });
        }
    }

    fn look_ahead(&mut self) {
        self.next = self.flows.iter().map(|limited| limited.next(self.scale)).min();
    }

    /// Packets that wait: `offered = passed + released + held`.
    pub fn held(&self) -> u64 {
        u64::from(self.held)
    }

    /// The counters so far.
    pub fn counts(&self) -> LimiterCounts {
        self.counts
    }

    /// How long flows were limited until `now`, the sum of all.
    pub fn limited(&self, now: Time) -> Span {
        self.flows.iter().map(|limited| now.saturating_since(limited.since)).fold(self.limited, |sum, span| sum + span)
    }

    /// The changes that were kept, in the order of time.
    pub fn changes(&self) -> &[RateChange] {
        &self.changes
    }

    /// A flow's present rate; `None` when it is not limited.
    pub fn rate(&self, flow: FlowKey) -> Option<Rate> {
        let index = self.flows.binary_search_by_key(&flow, |limited| limited.key).ok()?;
        Some(self.flows[index].point.current())
    }
}

impl LimitedFlow {
    /// Counts the tokens that the present rate has earned by `now`.
    fn pay(&mut self, now: Time, scale: u32) {
        let span = now.saturating_since(self.at).as_ps();
        let earned = u128::from(self.point.current().as_bps()) * u128::from(span) / u128::from(scale);
        self.debt = self.debt.saturating_sub(earned);
        self.at = now;
    }

    /// When the flow's timer ends a cycle or its first packet may leave.
    fn next(&self, scale: u32) -> Time {
        if self.held.is_empty() {
            return self.point.timer();
        }
        let paid = (self.debt * u128::from(scale)).div_ceil(u128::from(self.point.current().as_bps()));
        let paid = u64::try_from(paid).map_or(Time::MAX, |span| self.at + Span::from_ps(span));
        self.point.timer().min(paid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FlowTuple, HostId, TcpHeader};
    use proptest::prelude::*;
    use rand_xoshiro::rand_core::SeedableRng;

    const FLOW: FlowKey = FlowKey { dst: 1, sport: 5, dport: 80 };

    fn limiters(scale: u32) -> RateLimiters {
        let random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut limiters = RateLimiters::new(&QcnConfig::default(), Rate::from_gbps(10), scale, random);
        limiters.keep_changes(1000);
        limiters
    }

    fn data(sport: u16, size: u16) -> Packet {
        let tuple = FlowTuple { dst: HostId(1), sport, dport: 80, ..FlowTuple::default() };
        Packet::new_tcp(tuple, 0, size, TcpHeader::default())
    }

    fn us(n: u64) -> Time {
        Time::ZERO + Span::from_us(n)
    }

    fn ns(n: u64) -> Time {
        Time::ZERO + Span::from_ns(n)
    }

    /// Releases the packets that are due by `now`. Returns each with its time.
    fn run(limiters: &mut RateLimiters, now: Time) -> Vec<(PacketId, Time)> {
        let mut released = vec![];
        while let Some(at) = limiters.next().filter(|at| *at <= now) {
            while let Some(id) = limiters.release(at) {
                released.push((id, at));
            }
        }
        released
    }

    /// 5 Gb/s: 1,500 bytes last 2.4 us.
    #[test]
    fn a_limited_flow_waits_and_others_pass() {
        let mut limiters = limiters(1);
        assert_eq!(limiters.offer(PacketId(0), &data(5, 1500), us(0)), PacerDecision::Pass);
        limiters.on_notification(FLOW, 63, us(1));
        assert_eq!(limiters.offer(PacketId(1), &data(5, 1500), us(1)), PacerDecision::Pass);
        assert_eq!(limiters.offer(PacketId(2), &data(5, 1500), us(2)), PacerDecision::Held(Some(ns(3400))));
        assert_eq!(limiters.offer(PacketId(3), &data(5, 1500), us(2)), PacerDecision::Held(Some(ns(3400))));
        assert_eq!(limiters.offer(PacketId(4), &data(6, 1500), us(2)), PacerDecision::Pass);
        assert_eq!(limiters.offer(PacketId(5), &data(5, 1500), us(3)), PacerDecision::Held(Some(ns(3400))));
        // At 4 us half the rate: 1,125 bytes are unpaid, and last 3.6 us now.
        assert_eq!(run(&mut limiters, us(4)), [(PacketId(2), ns(3400))]);
        limiters.on_notification(FLOW, 63, us(4));
        assert_eq!(limiters.rate(FLOW), Some(Rate::from_bps(2_500_000_000)));
        assert_eq!(run(&mut limiters, us(20)), [(PacketId(3), ns(7600)), (PacketId(5), ns(12_400))]);
        let counts = limiters.counts();
        assert_eq!((counts.offered, counts.passed, counts.released, limiters.held()), (6, 3, 3, 0));
        assert_eq!((counts.notifications, counts.feedback, counts.limited, counts.peak), (2, 126, 1, 3));
        assert_eq!(limiters.limited(us(21)), Span::from_us(20));
    }

    /// No packet is sent: the timer alone ends the limiter, after five cycles of about 15 ms and some of half of that.
    #[test]
    fn a_silent_flow_is_let_go_in_the_end() {
        for scale in [1, 20] {
            let mut limiters = limiters(scale);
            limiters.on_notification(FLOW, 63, us(0));
            assert_eq!(run(&mut limiters, us(10_000_000)), []);
            assert_eq!((limiters.next(), limiters.rate(FLOW)), (None, None));
            let limited = limiters.limited(us(10_000_000)).as_us_f64() / 1000.0 / f64::from(scale);
            assert!((90.0..130.0).contains(&limited), "{limited} ms");
            let changes = limiters.changes();
            assert!(changes.windows(2).skip(1).all(|pair| pair[0].current < pair[1].current));
            assert_eq!(changes.last().unwrap().current, Rate::from_gbps(10));
            assert_eq!(limiters.offer(PacketId(0), &data(5, 1500), us(10_000_000)), PacerDecision::Pass);
        }
    }

    #[test]
    fn only_so_many_changes_are_kept() {
        let mut limiters = limiters(1);
        limiters.keep_changes(3);
        (0..9).for_each(|n| limiters.on_notification(FLOW, 1, us(n)));
        assert_eq!((limiters.changes().len(), limiters.counts().changes), (3, 9));
    }

    proptest! {
        #[test]
        fn no_packet_is_lost_or_overtaken(
            ops in prop::collection::vec((0u64..300, 0u16..4, 40u16..9000, prop::option::of(1u8..=63)), 1..300),
        ) {
            let mut limiters = limiters(1);
            let (mut now, mut order) = (us(0), vec![Vec::new(); 4]);
            let mut sent: Vec<u16> = Vec::new();
            for (n, (gap, flow, size, feedback)) in ops.into_iter().enumerate() {
                now += Span::from_us(gap);
                for (id, _) in run(&mut limiters, now) {
                    order[usize::from(sent[id.index()])].push(id);
                }
                let key = FlowKey { sport: flow, ..FLOW };
                if let Some(feedback) = feedback {
                    let before = limiters.rate(key);
                    limiters.on_notification(key, feedback, now);
                    prop_assert!(limiters.rate(key) <= Some(before.unwrap_or(Rate::from_gbps(10))));
                }
                let id = PacketId(n as u32);
                sent.push(flow);
                if limiters.offer(id, &data(flow, size), now) == PacerDecision::Pass {
                    order[usize::from(flow)].push(id);
                }
                let counts = limiters.counts();
                prop_assert_eq!(counts.offered, counts.passed + counts.released + limiters.held());
                prop_assert!(limiters.next().is_none_or(|at| at >= now));
                prop_assert!(limiters.held() == 0 || limiters.next().is_some());
            }
            prop_assert!(order.iter().all(|ids| ids.is_sorted()));
        }
    }
}
