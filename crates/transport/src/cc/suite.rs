//! The suite that every controller passes: properties over sequences of operations, and golden windows beside the
//! bounds that hold for them.

use super::*;
use proptest::prelude::*;

/// What can happen to a controller.
#[derive(Clone, Copy, Debug)]
enum Op {
    Ack { packets: u32, rtt_us: u64, ece: bool, may_grow: bool },
    Congestion { marked: bool },
    Timeout,
    Undo,
}

/// A controller with what the endpoint keeps for it.
struct Driver {
    controller: Controller,
    window: Window,
    before: Option<(u32, u32)>,
    now: Time,
    una: u64,
}

impl Driver {
    fn new(config: CcConfig) -> Self {
        let controller = config.build(Span::from_ms(1));
        Driver { controller, window: Window::new(10), before: None, now: Time::ZERO, una: 1 }
    }

    fn ack(&mut self, packets: u32, rtt: Span, ece: bool, may_grow: bool) {
        self.now += rtt / u64::from(self.window.cwnd);
        self.una += u64::from(packets);
        let next = self.una + u64::from(self.window.cwnd);
        let ack = Ack { now: self.now, delivered: packets, rtt: Some(rtt), srtt: Some(rtt), ece, una: self.una, next };
        self.controller.on_ack(&mut self.window, &ack);
        if may_grow {
            self.controller.grow(&mut self.window, &ack);
        }
    }

    fn congestion(&mut self, marked: bool) {
        self.before = Some((self.window.cwnd, self.window.ssthresh));
        self.window.ssthresh = self.controller.ssthresh(&self.window, marked);
        self.window.cwnd = self.window.ssthresh;
        self.window.credit = 0;
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Ack { packets, rtt_us, ece, may_grow } => self.ack(packets, Span::from_us(rtt_us), ece, may_grow),
            Op::Congestion { marked } => self.congestion(marked),
            Op::Timeout => {
                self.congestion(false);
                self.controller.on_timeout();
                self.window.cwnd = 1;
            }
            Op::Undo => {
                if let Some((cwnd, ssthresh)) = self.before.take() {
                    self.window.cwnd = self.controller.undo(&self.window, cwnd);
                    self.window.ssthresh = self.window.ssthresh.max(ssthresh);
                }
            }
        }
    }
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (1u32..20, 20u64..5000, prop::bool::weighted(0.2), any::<bool>())
            .prop_map(|(packets, rtt_us, ece, may_grow)| Op::Ack { packets, rtt_us, ece, may_grow }),
        2 => any::<bool>().prop_map(|marked| Op::Congestion { marked }),
        1 => Just(Op::Timeout),
        1 => Just(Op::Undo),
    ]
}

proptest! {
    #[test]
    fn holds_for_every_controller(ops in prop::collection::vec(op(), 1..200)) {
        for name in CcConfig::NAMES {
            let mut driver = Driver::new(CcConfig::from_name(name).unwrap());
            for &op in &ops {
                let before = driver.window;
                driver.apply(op);
                let after = driver.window;
                prop_assert!(after.cwnd >= 1, "{name}: a window of nothing after {op:?}");
                prop_assert!(after.ssthresh >= MIN_SSTHRESH, "{name}: threshold {} after {op:?}", after.ssthresh);
                let own_meaning = driver.controller.ecn() == EcnUse::OwnMeaning;
                match op {
                    Op::Ack { packets, may_grow, .. } if !own_meaning => {
                        let most = if may_grow { before.cwnd + packets } else { before.cwnd };
                        prop_assert!(after.cwnd <= most, "{name}: faster than slow start: {before:?} {after:?} {op:?}");
                        prop_assert!(after.cwnd >= before.cwnd, "{name}: an ACK shrinks the window");
                    }
                    Op::Congestion { .. } | Op::Timeout => {
                        let most = before.cwnd.max(MIN_SSTHRESH);
                        prop_assert!(after.ssthresh <= most, "{name}: {before:?} rises to {after:?} at congestion");
                    }
                    Op::Undo => prop_assert!(after.cwnd >= before.cwnd, "{name}: an undo shrinks the window"),
                    Op::Ack { .. } => {}
                }
            }
        }
    }

    /// The same operations give the same windows.
    #[test]
    fn repeats(ops in prop::collection::vec(op(), 1..100)) {
        for name in CcConfig::NAMES {
            let run = || {
                let mut driver = Driver::new(CcConfig::from_name(name).unwrap());
                ops.iter().map(|&op| { driver.apply(op); driver.window.cwnd }).collect::<Vec<_>>()
            };
            prop_assert_eq!(run(), run());
        }
    }
}

/// The window after each of 12 periods of 20 round trips that end with a loss or a window of marks. Beside each golden
/// row the bound that explains it: in congestion avoidance Reno gains at most a packet per round trip, so its peak W
/// obeys W = W/2 + 20, W = 40; CUBIC's friendly part at 0.53 packets obeys W = 0.7 W + 10.6, W = 35, also if evaluated
/// coarsely, as long as the round trip is longer than a tick; reTCP without marks is Reno; DCTCP with one marked window
/// in 20 cuts ever less (alpha tends to 1/20), so that it gains up to 20 packets a period.
#[test]
fn golden_windows() {
    let exact_cubic = CcConfig::Cubic(CubicConfig { coarse: false, ..CubicConfig::default() });
    let named = |name| CcConfig::from_name(name).unwrap();
    let reno = [50, 45, 42, 41, 40, 40, 40, 40, 40, 40, 40, 40];
    let golden = [
        ("newreno", named("newreno"), 100, false, reno, 37..=40),
        ("retcp", named("retcp"), 100, false, reno, 37..=40),
        ("cubic", named("cubic"), 10_000, false, [79, 64, 53, 46, 41, 37, 34, 32, 31, 30, 30, 30], 28..=36),
        ("cubic, exact", exact_cubic, 100, false, [40, 38, 36, 35, 34, 33, 33, 33, 33, 33, 33, 33], 32..=36),
        ("dctcp", named("dctcp"), 100, true, [50, 62, 77, 93, 109, 124, 138, 155, 171, 186, 201, 215], 200..=270),
    ];
    for (name, config, rtt_us, marked, expected, settles) in golden {
        let mut driver = Driver::new(config);
        driver.window = Window { cwnd: 30, ssthresh: 15, credit: 0 };
        let peaks: Vec<u32> = (0..12)
            .map(|_| {
                for round in 0..20 {
                    for _ in 0..driver.window.cwnd {
                        let ece = marked && round == 19;
                        driver.ack(1, Span::from_us(rtt_us), ece, true);
                    }
                }
                let peak = driver.window.cwnd;
                driver.congestion(marked);
                peak
            })
            .collect();
        assert_eq!(peaks, expected, "{name}");
        assert!(settles.contains(&peaks[11]), "{name}: {} is outside of {settles:?}", peaks[11]);
    }
}
