//! QCN's reaction point: the rate of one flow, down with feedback and up again in stages.
//!
//! IEEE 802.1Qau-2010, 30.3 and clause 32; Allerton 2008, section III-B. Feedback F (0 to 63) makes the current rate
//! the target rate, and the current rate smaller:
//!
//! ```text
//! C <- C max(1 - G_d F / 63, min_decrease), at least min_rate
//! ```
//!
//! Then a byte counter and a timer count cycles. At the end of each cycle of either, the target grows by the step of
//! the present stage and C goes half the way to it: in *fast recovery*, while neither has counted more than 5 cycles,
//! the step is nothing; in *active increase*, one has, it is R_AI; in *hyper-active increase*, both have, it is R_HAI
//! times the cycles that both have counted since. From the fifth cycle on, a cycle is half as long. If the target is
//! more than ten times C when either counter ends its first cycle, it is divided by eight instead. At the line's rate
//! the limiter is over.
//!
//! *Extra fast recovery*: feedback that comes before the byte counter ends its first cycle leaves the target where it
//! was, so that a burst of notifications does not take away what to recover to, nor starts the byte counter's cycle
//! anew. So does, with this reason, a public model of the pseudo code (R. Pan, "QCN pseudo code", IEEE 802.1 documents,
//! 2007 and later) for OMNeT++, which has the same stages, halved cycles and division by eight.
//!
//! Choices: each cycle but the first after feedback is 15 % longer or shorter by chance, the timer's as well. Rates are
//! whole bits per second and half the way is rounded up, so that no float decides when a packet goes. G_d is relative
//! to the largest feedback, as the study's 0.5 is; the standard's 1/128 for each of the 63 steps is 0.492 of that.

use super::{MOST_FEEDBACK, QcnConfig, jittered};
use firstlight_units::{Rate, Span, Time};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A flow's rate. Times are on the engine's clock.
#[derive(Clone, Debug)]
pub struct ReactionPoint {
    line: u64,
    /// C in bits per second.
    current: u64,
    target: u64,
    /// Cycles that the byte counter has completed since the last feedback.
    byte_cycles: u32,
    /// Cycles that the timer has completed since the last feedback.
    time_cycles: u32,
    /// Bytes to the end of the byte counter's cycle.
    bytes_left: u64,
    /// The end of the timer's cycle.
    timer: Time,
}

/// Shares are kept in parts of 2^-32.
const FRACTION: u32 = 32;

impl ReactionPoint {
    /// The reaction point of a flow that may use the whole rate of its line, and that gets its first feedback now.
    pub fn new(config: &QcnConfig, line: Rate) -> Self {
        let line = line.as_bps();
        let bytes_left = config.byte_limit.get();
        ReactionPoint {
            line,
            current: line,
            target: line,
            byte_cycles: 0,
            time_cycles: 0,
            bytes_left,
            timer: Time::MAX,
        }
    }

    /// A notification with this feedback comes. `scale` stretches the timer.
    pub fn on_feedback(&mut self, config: &QcnConfig, feedback: u8, scale: u32, now: Time) {
        if self.byte_cycles > 0 || !config.extra_fast_recovery {
            self.target = self.current;
            self.bytes_left = config.byte_limit.get();
        }
        self.byte_cycles = 0;
        self.time_cycles = 0;
        self.timer = now + config.timer * u64::from(scale);
        let least = config.min_rate.as_bps().min(self.line);
        let slower = (u128::from(self.current) * u128::from(factor(config, feedback))) >> FRACTION;
        self.current = (slower as u64).max(least);
    }

    /// A packet of `size` bytes goes.
    pub fn on_sent(&mut self, config: &QcnConfig, size: u16, random: &mut Xoshiro256PlusPlus) {
        if let Some(left @ 1..) = self.bytes_left.checked_sub(u64::from(size)) {
            self.bytes_left = left;
            return;
        }
        self.byte_cycles += 1;
        let limit = config.byte_limit.get();
        let cycle = if self.byte_cycles < config.fast_recovery { limit } else { limit / 2 };
        self.bytes_left = jittered(cycle, random);
        self.increase(config);
    }

    /// The timer ends a cycle: it is [`ReactionPoint::timer`].
    pub fn on_timer(&mut self, config: &QcnConfig, scale: u32, random: &mut Xoshiro256PlusPlus) {
        self.time_cycles += 1;
        let timer = (config.timer * u64::from(scale)).as_ps();
        let cycle = if self.time_cycles < config.fast_recovery { timer } else { timer / 2 };
        self.timer += Span::from_ps(jittered(cycle, random));
        self.increase(config);
    }

    fn increase(&mut self, config: &QcnConfig) {
        let beyond = |cycles: u32| cycles.saturating_sub(config.fast_recovery);
        let (bytes, time) = (beyond(self.byte_cycles), beyond(self.time_cycles));
        let step = match bytes.min(time) {
            0 if bytes.max(time) == 0 => 0,
            0 => config.active_increase.as_bps(),
            both => config.hyper_increase.as_bps().saturating_mul(u64::from(both)),
        };
        if (self.byte_cycles == 1 || self.time_cycles == 1) && self.target / 10 > self.current {
            self.target /= 8;
        } else {
            self.target = self.target.saturating_add(step).min(self.line.saturating_mul(2));
        }
        // No target is below its rate: feedback lowers the rate, and this goes no further than the target.
        self.current = (self.current + (self.target - self.current).div_ceil(2)).min(self.line);
    }

    /// When the timer's cycle ends.
    pub fn timer(&self) -> Time {
        self.timer
    }

    /// The current rate (C of the standard).
    pub fn current(&self) -> Rate {
        Rate::from_bps(self.current)
    }

    /// The target rate, which C approaches: at most the line's rate.
    pub fn target(&self) -> Rate {
        Rate::from_bps(self.target.min(self.line))
    }

    /// Whether the flow has its line's rate again.
    pub fn is_over(&self) -> bool {
        self.current >= self.line
    }
}

/// The share of the rate that is left after feedback, in units of 2^-32.
fn factor(config: &QcnConfig, feedback: u8) -> u64 {
    let fixed = |value: f64| (value * f64::from(FRACTION).exp2()).round() as u64;
    let step = u128::from(fixed(config.gain)) * u128::from(feedback.min(MOST_FEEDBACK));
    let decrease = step.div_ceil(u128::from(MOST_FEEDBACK)) as u64;
    ((1 << FRACTION) - decrease).max(fixed(config.min_decrease))
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstlight_units::Bytes;
    use proptest::prelude::*;
    use rand_xoshiro::rand_core::SeedableRng;

    const LINE: Rate = Rate::from_gbps(10);

    fn config() -> QcnConfig {
        QcnConfig::default()
    }

    fn random() -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(3)
    }

    fn ms(n: u64) -> Time {
        Time::ZERO + Span::from_ms(n)
    }

    fn mbps(rate: Rate) -> f64 {
        rate.as_bps() as f64 / 1e6
    }

    /// Current and target in Mb/s.
    fn rates(point: &ReactionPoint) -> (f64, f64) {
        (mbps(point.current()), mbps(point.target()))
    }

    fn slowed(config: &QcnConfig, feedback: u8) -> ReactionPoint {
        let mut point = ReactionPoint::new(config, LINE);
        point.on_feedback(config, feedback, 1, Time::ZERO);
        point
    }

    /// Ends a cycle of the byte counter.
    fn byte_cycle(point: &mut ReactionPoint, config: &QcnConfig) {
        let cycles = point.byte_cycles;
        let mut random = random();
        while point.byte_cycles == cycles {
            point.on_sent(config, 1500, &mut random);
        }
    }

    #[test]
    fn decreases_by_hand() {
        // Half of the line at the largest feedback; 1 - 0.5 * 21 / 63 = 5/6 at a third of it.
        assert_eq!(rates(&slowed(&config(), 63)), (5000.0, 10_000.0));
        assert!((mbps(slowed(&config(), 21).current()) - 8333.333).abs() < 0.001);
        // A larger gain meets the least factor, and the least rate stops any.
        assert_eq!(rates(&slowed(&QcnConfig { gain: 0.9, ..config() }, 63)).0, 5000.0);
        let floor = QcnConfig { gain: 0.9, min_decrease: 0.05, min_rate: Rate::from_gbps(3), ..config() };
        assert_eq!(rates(&slowed(&floor, 63)).0, 3000.0);
    }

    /// Five cycles of recovery to the rate before, then 5 Mb/s more a cycle.
    #[test]
    fn recovers_and_then_probes() {
        let config = config();
        let mut point = slowed(&config, 63);
        point.target = 8_000_000_000;
        let mut expected = 5000.0;
        for _ in 0..5 {
            byte_cycle(&mut point, &config);
            expected = (expected + 8000.0) / 2.0;
            assert_eq!(rates(&point), (expected, 8000.0));
        }
        byte_cycle(&mut point, &config);
        assert_eq!(rates(&point), ((expected + 8005.0) / 2.0, 8005.0));
        // Timer and bytes: hyper-active only when both are beyond five, and then faster with each cycle of both.
        (0..5).for_each(|_| point.on_timer(&config, 1, &mut random()));
        assert_eq!(rates(&point).1, 8030.0);
        point.on_timer(&config, 1, &mut random());
        assert_eq!(rates(&point).1, 8080.0);
        point.on_timer(&config, 1, &mut random());
        assert_eq!(rates(&point).1, 8130.0, "the byte counter has but one cycle beyond five");
        byte_cycle(&mut point, &config);
        assert_eq!(rates(&point).1, 8230.0);
    }

    #[test]
    fn cycles_are_half_as_long_after_recovery() {
        let config = QcnConfig { byte_limit: Bytes::new(15_000_000), ..config() };
        let mut point = slowed(&config, 63);
        point.target = point.current;
        let (mut packets, mut random) = (vec![], random());
        for cycle in 1..=8 {
            packets.push(0u64);
            while point.byte_cycles < cycle {
                point.on_sent(&config, 1500, &mut random);
                packets[cycle as usize - 1] += 1;
            }
        }
        assert_eq!(packets[0], 10_000);
        assert!(packets[1..5].iter().all(|n| (8500..=11_501).contains(n)), "{packets:?}");
        assert!(packets[5..].iter().all(|n| (4250..=5751).contains(n)), "{packets:?}");
        assert_eq!(point.timer(), ms(15));
        let mut timers = vec![];
        for _ in 0..8 {
            let before = point.timer();
            point.on_timer(&config, 1, &mut random);
            timers.push((point.timer() - before).as_us_f64() / 1000.0);
        }
        assert!(timers[..4].iter().all(|t| (12.75..=17.25).contains(t)), "{timers:?}");
        assert!(timers[4..].iter().all(|t| (6.375..=8.625).contains(t)), "{timers:?}");
    }

    #[test]
    fn extra_fast_recovery_keeps_the_target() {
        for (extra, target) in [(true, 10_000.0), (false, 5000.0)] {
            let config = QcnConfig { extra_fast_recovery: extra, ..config() };
            let mut point = slowed(&config, 63);
            point.on_feedback(&config, 63, 1, ms(1));
            assert_eq!(rates(&point), (2500.0, target));
            assert_eq!(point.timer(), ms(16));
            // After a cycle of bytes it is the current rate that is recovered to.
            byte_cycle(&mut point, &config);
            let before = point.current();
            point.on_feedback(&config, 63, 1, ms(1));
            assert_eq!(point.target(), before);
        }
    }

    /// Cycles begin anew; the byte counter's first one, while it has not ended, goes on.
    #[test]
    fn feedback_begins_recovery_anew() {
        let config = QcnConfig { byte_limit: Bytes::new(15_000), ..config() };
        let mut point = slowed(&config, 63);
        let mut random = random();
        (0..4).for_each(|_| point.on_sent(&config, 1500, &mut random));
        point.on_timer(&config, 1, &mut random);
        point.on_feedback(&config, 63, 1, ms(20));
        assert_eq!((point.byte_cycles, point.time_cycles, point.bytes_left), (0, 0, 9000));
        byte_cycle(&mut point, &config);
        byte_cycle(&mut point, &config);
        point.on_feedback(&config, 63, 1, ms(30));
        assert_eq!((point.byte_cycles, point.time_cycles, point.bytes_left), (0, 0, 15_000));
        assert_eq!(point.timer(), ms(45));
    }

    #[test]
    fn a_target_far_off_is_divided_by_eight() {
        let config = config();
        let mut point = slowed(&config, 63);
        (0..3).for_each(|_| point.on_feedback(&config, 63, 1, ms(1)));
        assert_eq!(rates(&point), (625.0, 10_000.0));
        byte_cycle(&mut point, &config);
        assert_eq!(rates(&point), ((625.0 + 1250.0) / 2.0, 1250.0));
        byte_cycle(&mut point, &config);
        assert_eq!(rates(&point).1, 1250.0);
    }

    #[test]
    fn it_ends_at_the_lines_rate() {
        let config = config();
        let mut point = slowed(&config, 63);
        let mut cycles = 0;
        while !point.is_over() {
            byte_cycle(&mut point, &config);
            cycles += 1;
        }
        // 5 cycles leave 156.25 Mb/s to go; k more of them with a target 5 k beyond the line: 75.6, 32.8, 8.9, none.
        assert_eq!((cycles, point.current(), point.target()), (9, LINE, LINE));
    }

    #[derive(Clone, Debug)]
    enum ReactionOp {
        Feedback(u8),
        Sent(u16),
        Timer,
    }

    fn op() -> impl Strategy<Value = ReactionOp> {
        prop_oneof![
            1 => (1u8..=63).prop_map(ReactionOp::Feedback),
            4 => (40u16..9000).prop_map(ReactionOp::Sent),
            2 => Just(ReactionOp::Timer),
        ]
    }

    proptest! {
        #[test]
        fn the_rate_stays_in_its_bounds_and_goes_the_right_way(
            ops in prop::collection::vec(op(), 1..400), extra in any::<bool>(), gain in 0.01..0.99f64,
        ) {
            let config = QcnConfig { extra_fast_recovery: extra, gain, byte_limit: Bytes::new(20_000), ..config() };
            let (mut point, mut random, mut now) = (slowed(&config, 1), random(), Time::ZERO);
            for op in ops {
                let (before, target) = (point.current(), point.target());
                match op {
                    ReactionOp::Feedback(feedback) => {
                        point.on_feedback(&config, feedback, 1, now);
                        prop_assert!(point.current() < before || before == config.min_rate);
                        prop_assert!(point.current().as_bps() >= before.as_bps() / 2 - 1);
                        prop_assert!(point.target() <= target);
                    }
                    ReactionOp::Sent(size) => {
                        point.on_sent(&config, size, &mut random);
                        prop_assert!(point.current() >= before);
                    }
                    ReactionOp::Timer => {
                        now = point.timer();
                        point.on_timer(&config, 1, &mut random);
                        prop_assert!(point.current() >= before && point.timer() > now);
                    }
                }
                prop_assert!(point.current() >= config.min_rate && point.current() <= LINE);
                prop_assert!(point.target() >= point.current() && point.target() <= LINE);
            }
        }
    }
}
