//! CUBIC (RFC 9438), with HyStart.
//!
//! Windows are in packets and times in seconds, as in the RFC's equations. Two deviations are Linux's. The
//! Reno-friendly estimate keeps alpha_cubic after it has passed the window of the last congestion, as in RFC 8312;
//! section 4.3 of RFC 9438 sets it to 1 then. The least window after a reduction is two packets.
//!
//! `coarse`, on by default, evaluates these equations as Linux does: in whole packets, at most once per tick of the
//! host's clock, and only every 1/32 s while the window stands still. In between the window grows at the pace that was
//! computed last, also where congestion has brought the window back to that size. Wide-area paths show no effect of
//! this. On a path of 100 us a window can stand still for 300 round trips. A window that begins to grow keeps the pace
//! of its first packet for the rest of the tick, which is 10 round trips at HZ=1000.

use super::hystart::HyStart;
use super::round::{in_ticks, tick_of};
use super::{Ack, CongestionControl, ControllerConfig, ModuleParameter, Window};
use firstlight_units::{Span, Time};

/// Section 5.1: how fast the cubic grows, in packets per second cubed.
const C: f64 = 0.4;
/// Linux has beta, C and seconds in such parts; so has the coarse evaluation.
const PARTS: f64 = 1024.0;
/// Coarse evaluation: C in whole parts (Linux: ten times `bic_scale`).
const COARSE_C: f64 = 410.0 / PARTS;
/// Coarse evaluation: how long a pace is kept while the window stands still, but for the rounding to ticks.
const KEEP: Span = Span::from_us(31_250);
/// Packets acknowledged per packet of growth, for each packet of the window, where the curve asks for none.
const STANDSTILL: u32 = 100;
/// The slowest pace (packets per packet) before the first congestion, when the plateau is not known.
const PROBING: u32 = 20;

/// CUBIC (RFC 9438).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "spec", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema), serde(default))]
pub struct CubicConfig {
    /// The factor of the window at congestion (section 4.6).
    #[cfg_attr(feature = "spec", schemars(range(min = 0, max = 1)))]
    pub beta: f64,
    /// Give up bandwidth faster when the window shrinks from one congestion to the next (section 4.7).
    pub fast_convergence: bool,
    /// Leave slow start by HyStart.
    pub hystart: bool,
    /// Evaluate the curve as coarsely as Linux does, once per `tcp.tick`. `false`: at every ACK, as in RFC 9438.
    #[cfg_attr(feature = "spec", schemars(extend("x-when" = "simulated flow")))]
    pub coarse: bool,
}

impl Default for CubicConfig {
    fn default() -> Self {
        CubicConfig { beta: 0.7, fast_convergence: true, hystart: true, coarse: true }
    }
}

impl ControllerConfig for CubicConfig {
    const LINUX: Option<&'static str> = Some("cubic");
    const TAKES_MIN_WINDOW: bool = true;

    fn parameters(&self) -> Vec<ModuleParameter> {
        const MODULE: &str = "tcp_cubic";
        let beta = match (self.beta * PARTS).round() as u32 {
            // The kernel divides by 1 - beta.
            1024.. => Err("a Linux host takes less than 1: use at most 0.999".into()),
            beta => Ok(beta),
        };
        vec![
            ModuleParameter { value: beta, ..ModuleParameter::new(MODULE, "beta", 0u32) },
            ModuleParameter::new(MODULE, "fast_convergence", self.fast_convergence),
            ModuleParameter::new(MODULE, "hystart", self.hystart),
        ]
    }
}

/// Coarse evaluation: round trips in so long a time from an epoch's start are not looked at.
const RECOVERY: Span = Span::from_secs(1);

/// The state since the last congestion: the "epoch" of section 4.2.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    /// The plateau of the curve.
    w_max: f64,
    /// Seconds from the epoch's start to the plateau.
    k: f64,
    /// The window that Reno would have reached (section 4.3).
    w_est: f64,
    /// Coarse evaluation: packets acknowledged that are not in `w_est` yet.
    credit: u32,
}

/// The last result of the coarse evaluation.
#[derive(Clone, Copy, Debug, Default)]
struct CoarsePace {
    /// Packets to be acknowledged for each packet that the window grows.
    per: u32,
    /// The window, in packets, for which this pace was found.
    cwnd: u32,
    /// Start of the host's tick in which this pace was found.
    tick: Time,
}

/// The state of CUBIC.
#[derive(Clone, Debug)]
pub struct Cubic {
    config: CubicConfig,
    epoch: Option<Epoch>,
    /// The window before the last congestion, less after fast convergence; 0 when there was none.
    w_max: f64,
    /// The value of `w_max` before the last congestion, for undo.
    w_max_before: f64,
    /// Exact evaluation: fractions of a packet that the window has still to grow.
    fraction: f64,
    pace: CoarsePace,
    /// Coarse evaluation: the tick of the host's clock.
    tick: Span,
    /// Coarse evaluation: how long the pace of a window is kept while the window does not change.
    keep: Span,
    hystart: HyStart,
    /// HyStart has ended a slow start, and does not watch another one before a timeout.
    slow_start_ended: bool,
}

impl Cubic {
    /// A controller for one connection.
    pub fn new(mut config: CubicConfig, tick: Span) -> Self {
        if config.coarse {
            config.beta = (config.beta * PARTS).round() / PARTS;
        }
        // More than 1/32 s in whole ticks.
        let keep = if tick.is_zero() { KEEP } else { tick * (KEEP.as_ps() / tick.as_ps() + 1) };
        Cubic {
            config,
            epoch: None,
            w_max: 0.0,
            w_max_before: 0.0,
            fraction: 0.0,
            pace: CoarsePace::default(),
            tick,
            keep,
            hystart: HyStart::new(),
            slow_start_ended: false,
        }
    }

    /// Section 4.3: the additive increase that gives Reno's average rate with this beta.
    fn alpha(&self) -> f64 {
        3.0 * (1.0 - self.config.beta) / (1.0 + self.config.beta)
    }

    fn begin_epoch(&mut self, cwnd: f64, now: Time) -> Epoch {
        self.fraction = 0.0;
        let w_max = self.w_max.max(cwnd);
        Epoch { start: now, w_max, k: self.time_to_plateau(w_max - cwnd), w_est: cwnd, credit: 0 }
    }

    /// Seconds until the curve has grown by so many packets: K of section 4.2.
    fn time_to_plateau(&self, packets: f64) -> f64 {
        if self.config.coarse {
            return (PARTS * coarse_root(packets / COARSE_C)).floor() / PARTS;
        }
        libm::cbrt(packets / C)
    }

    /// Sections 4.2 to 4.5.
    fn avoid_congestion(&mut self, window: &mut Window, acked: u32, ack: &Ack) {
        if self.config.coarse {
            self.find_pace(window.cwnd, acked, ack);
            return window.additive_increase(self.pace.per, acked);
        }
        let cwnd = f64::from(window.cwnd);
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin_epoch(cwnd, ack.now));
        epoch.w_est += self.alpha() * f64::from(acked) / cwnd;
        self.epoch = Some(epoch);
        if epoch.w_cubic((ack.now - epoch.start).as_secs_f64()) < epoch.w_est {
            window.cwnd = window.cwnd.max(epoch.w_est as u32);
        } else {
            let rtt = ack.srtt.map_or(0.0, |rtt| rtt.as_secs_f64());
            let target = epoch.w_cubic((ack.now - epoch.start).as_secs_f64() + rtt);
            self.fraction += (target.clamp(cwnd, 1.5 * cwnd) - cwnd) / cwnd * f64::from(acked);
            let whole = self.fraction as u32;
            window.cwnd += whole;
            self.fraction -= f64::from(whole);
        }
    }

    /// The coarse evaluation. A pace found for this window holds for a while, even if there was congestion since.
    fn find_pace(&mut self, cwnd: u32, acked: u32, ack: &Ack) {
        if let Some(epoch) = &mut self.epoch {
            epoch.credit += acked;
        }
        let now = self.clock(ack.now);
        let age = now - self.pace.tick;
        if self.pace.cwnd == cwnd && age < self.keep {
            return;
        }
        let fresh = self.epoch.is_none();
        let mut epoch = self.epoch.unwrap_or_else(|| Epoch { credit: acked, ..self.begin_epoch(cwnd.into(), now) });
        if fresh || age >= self.tick {
            // A round trip ahead, in whole ticks. The distance to the plateau is rounded down, on both sides of it.
            let ahead = now - epoch.start + self.least_rtt_in_ticks();
            let t = (ahead.as_secs_f64() * PARTS).floor() / PARTS - epoch.k;
            let target = (epoch.w_max + (COARSE_C * t * t * t).trunc()) as u32;
            self.pace.per = if target > cwnd { cwnd / (target - cwnd) } else { cwnd.saturating_mul(STANDSTILL) };
            if self.w_max == 0.0 {
                self.pace.per = self.pace.per.min(PROBING);
            }
            (self.pace.cwnd, self.pace.tick) = (cwnd, now);
        }
        // Packets for each of which Reno's window would grow by one: alpha's inverse is in whole eighths.
        let eighths = (8.0 / self.alpha()).min(f64::from(u32::MAX)) as u64;
        let per_packet = (u64::from(cwnd) * eighths / 8).clamp(1, u64::from(u32::MAX)) as u32;
        let grown = epoch.credit.saturating_sub(1) / per_packet;
        epoch.credit -= grown * per_packet;
        epoch.w_est += f64::from(grown);
        self.epoch = Some(epoch);
        let friendly = epoch.w_est as u32;
        if friendly > cwnd {
            self.pace.per = self.pace.per.min(cwnd / (friendly - cwnd));
        }
        // Section 4.4: at most 1.5 times the window in a round trip.
        self.pace.per = self.pace.per.max(2);
    }

    /// The time on the clock that is used: when the tick began, for the coarse evaluation.
    fn clock(&self, now: Time) -> Time {
        let tick = if self.config.coarse { self.tick } else { Span::ZERO };
        tick_of(now, tick)
    }

    /// The least round trip, in whole ticks where time is counted in these.
    fn least_rtt_in_ticks(&self) -> Span {
        let rtt = if self.hystart.min_rtt == Span::MAX { Span::ZERO } else { self.hystart.min_rtt };
        in_ticks(rtt, self.tick)
    }
}

/// Finds the cube root as coarsely as Linux does.
///
/// It makes one step of Newton's method from a guess by the first two octal digits, and gives a part in 1024 less. The
/// guesses were fitted to Linux's roots for plateaus 1 to 6,000 packets away. The root is from 0.1 % too low to 0.15 %
/// too high, which decides in which round trip a window begins to grow.
fn coarse_root(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let (mut digits, mut unit) = (x, 1.0);
    while digits >= 64.0 {
        (digits, unit) = (digits / 8.0, unit * 2.0);
    }
    while digits < 8.0 {
        (digits, unit) = (digits * 8.0, unit / 2.0);
    }
    let guess = f64::from(FIRST_GUESSES[digits as usize - 8]) / 64.0 * unit;
    (2.0 * guess + x / (guess * guess)) / 3.0 * (1.0 - 1.0 / PARTS)
}

/// 64 times the guessed root of 8 to 63, fitted to Linux's roots.
#[rustfmt::skip]
const FIRST_GUESSES: [u16; 56] = [
    133, 139, 144, 148, 153, 157, 161, 166, 167, 171, 174, 178, 180, 183, 186, 189, 191, 195, 197, 200, 202, 204, 207,
    209, 210, 212, 214, 216, 219, 221, 223, 225, 227, 229, 231, 232, 234, 235, 237, 239, 241, 242, 244, 246, 247, 249,
    250, 252, 254, 255, 256, 258, 260, 261, 262, 264,
];

impl Epoch {
    /// Section 4.2, figure 1: the window `t` seconds into the epoch.
    fn w_cubic(&self, t: f64) -> f64 {
        let t = t - self.k;
        C * t * t * t + self.w_max
    }
}

impl CongestionControl for Cubic {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        // Just after a recovery delays are those of its queue.
        let recovers = self.epoch.is_some_and(|epoch| self.clock(ack.now) - epoch.start < RECOVERY);
        let rtt = ack.rtt.filter(|_| !(self.config.coarse && recovers));
        let watches = self.config.hystart && !self.slow_start_ended;
        self.slow_start_ended |= self.hystart.on_ack(window, &Ack { rtt, ..*ack }, watches);
    }

    fn on_resume(&mut self, now: Time, last_sent: Time, _next: u64) {
        // Section 4.2: idle times do not count.
        let (now, last_sent) = (self.clock(now), self.clock(last_sent));
        if let Some(epoch) = &mut self.epoch {
            epoch.start = (epoch.start + (now - last_sent)).min(now);
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack) {
        let mut acked = ack.delivered;
        if window.in_slow_start() {
            acked = window.slow_start(acked);
        }
        if acked > 0 {
            self.avoid_congestion(window, acked, ack);
        }
    }

    fn ssthresh(&mut self, window: &Window, _marked: bool) -> u32 {
        let cwnd = f64::from(window.cwnd);
        let shrunk = self.config.fast_convergence && cwnd < self.w_max;
        self.w_max_before = self.w_max;
        let w_max = if shrunk { cwnd * (1.0 + self.config.beta) / 2.0 } else { cwnd };
        self.w_max = if self.config.coarse { w_max.trunc() } else { w_max };
        self.epoch = None;
        ((cwnd * self.config.beta) as u32).max(window.floor)
    }

    fn on_timeout(&mut self, _window: &mut Window) {
        self.on_timeout_in_reduction();
    }

    fn on_timeout_in_reduction(&mut self) {
        // Section 4.8: the first epoch after a timeout has its plateau where it starts.
        self.w_max = 0.0;
        self.epoch = None;
        self.pace = CoarsePace::default();
        self.hystart.reset();
        if self.config.coarse {
            self.hystart.min_rtt = Span::MAX;
        }
        self.slow_start_ended = false;
    }

    fn undo(&mut self, window: &Window, prior_cwnd: u32) -> u32 {
        // Section 4.9.1; as measured, Linux goes back with the window alone.
        if !self.config.coarse {
            self.w_max = self.w_max_before;
            self.epoch = None;
        }
        window.cwnd.max(prior_cwnd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstlight_units::Span;

    fn ack(now: Time, delivered: u32) -> Ack {
        let rtt = Some(Span::from_ms(10));
        Ack { now, delivered, rtt, srtt: rtt, ..Ack::default() }
    }

    /// RFC 9438 figure 1 by hand: after a fall from 1000 packets to 700, K = cbrt(300 / 0.4) = 9.086 s, and the window
    /// is back at 1000 after K.
    #[test]
    fn returns_to_the_plateau_after_k() {
        let mut cubic = Cubic::new(CubicConfig { coarse: false, ..CubicConfig::default() }, Span::ZERO);
        let mut window = Window { cwnd: 1000, ssthresh: 500, ..Window::new(1) };
        window.ssthresh = cubic.ssthresh(&window, false);
        window.cwnd = window.ssthresh;
        assert_eq!(window.cwnd, 700);
        let mut now = Time::ZERO;
        let k = 9.086;
        let mut halfway = 0;
        while now.as_secs_f64() < k {
            cubic.grow(&mut window, &ack(now, 1));
            now += Span::from_us(100);
            if (now.as_secs_f64() - k / 2.0).abs() < 1e-4 {
                halfway = window.cwnd;
            }
        }
        // Halfway the curve lies an eighth of the fall below the plateau: 1000 - 300 / 8.
        assert!((958..=965).contains(&halfway), "halfway {halfway}");
        assert!((997..=1001).contains(&window.cwnd), "at K {}", window.cwnd);
    }

    /// As measured on Linux 7.2: after a fall from 161 packets to 112 the window stands still in the first tick, and
    /// after one from 160 it grows when 112 packets are acknowledged. An exact root lets both grow.
    #[test]
    fn a_coarse_root_decides_whether_the_window_grows() {
        for (before, grows) in [(161, false), (160, true)] {
            let mut cubic = Cubic::new(CubicConfig::default(), Span::from_ms(4));
            let mut window = Window { cwnd: before, ssthresh: before, ..Window::new(1) };
            window.ssthresh = cubic.ssthresh(&window, false);
            window.cwnd = window.ssthresh;
            assert_eq!(window.cwnd, 112);
            let ack = Ack { rtt: Some(Span::from_us(27)), ..ack(Time::from_ns(100_000), 1) };
            for _ in 0..113 {
                cubic.on_ack(&mut window, &ack);
                cubic.grow(&mut window, &ack);
            }
            assert_eq!(window.cwnd > 112, grows, "after {before}");
        }
    }

    #[test]
    fn the_coarse_root_is_near_the_root() {
        for packets in 1..100_000 {
            let packets = f64::from(packets);
            let apart = coarse_root(packets) / libm::cbrt(packets) - 1.0;
            assert!((-0.001..0.0016).contains(&apart), "{packets}: {apart}");
        }
    }

    #[test]
    fn small_windows_grow_as_reno_would_at_this_beta() {
        let mut cubic = Cubic::new(CubicConfig { coarse: false, ..CubicConfig::default() }, Span::ZERO);
        let mut window = Window { cwnd: 10, ssthresh: 5, ..Window::new(1) };
        window.ssthresh = cubic.ssthresh(&window, false);
        window.cwnd = window.ssthresh;
        // 100 round trips of 100 us: the cubic has not moved; alpha = 0.529 packets per round trip.
        let mut now = Time::ZERO;
        for _ in 0..100 {
            for _ in 0..window.cwnd {
                cubic.grow(&mut window, &ack(now, 1));
            }
            now += Span::from_us(100);
        }
        assert!((57..=62).contains(&window.cwnd), "{}", window.cwnd);
    }

    /// At its plateau a coarse window of two stands still until 100 packets for each of its own are acknowledged.
    #[test]
    fn a_window_at_its_plateau_stands_still() {
        let mut cubic = Cubic::new(CubicConfig::default(), Span::from_ms(4));
        let mut window = Window { cwnd: 2, ssthresh: 2, ..Window::new(1) };
        window.ssthresh = cubic.ssthresh(&window, true);
        let mut now = Time::ZERO + Span::from_ms(8);
        for _ in 0..199 {
            cubic.grow(&mut window, &ack(now, 1));
            now += Span::from_us(100);
        }
        assert_eq!(window.cwnd, 2);
        cubic.grow(&mut window, &ack(now, 1));
        assert_eq!(window.cwnd, 3);
    }

    /// HyStart ends one slow start, and no other one before a timeout.
    #[test]
    fn hystart_ends_one_slow_start() {
        let mut cubic = Cubic::new(CubicConfig::default(), Span::from_ms(4));
        let mut una = 1;
        let mut ends = |cubic: &mut Cubic| {
            let mut window = Window { cwnd: 100, ssthresh: u32::MAX, ..Window::new(1) };
            for rtt in [1, 10].map(Span::from_ms) {
                una += 200_000;
                for _ in 0..9 {
                    let now = Time::ZERO + Span::from_us(una);
                    let ack = Ack { rtt: Some(rtt), una, next: una + 100_000, mss: 1448, ..ack(now, 1) };
                    cubic.on_ack(&mut window, &ack);
                }
            }
            window.ssthresh == 100
        };
        assert_eq!([ends(&mut cubic), ends(&mut cubic)], [true, false]);
        cubic.on_timeout(&mut Window::new(1));
        assert_eq!([ends(&mut cubic), ends(&mut cubic)], [true, false]);
    }

    /// RFC 9438, section 4.2: an epoch does not count the time in which nothing was in flight.
    #[test]
    fn idle_times_do_not_count() {
        let mut cubic = Cubic::new(CubicConfig::default(), Span::from_ms(4));
        let mut window = Window { cwnd: 46, ssthresh: 32, ..Window::new(1) };
        let at = |ms| Time::ZERO + Span::from_ms(ms);
        cubic.grow(&mut window, &ack(at(8), 1));
        cubic.on_resume(at(1010), at(9), 0);
        assert_eq!(cubic.epoch.unwrap().start, at(1008));
        cubic.on_resume(at(2010), at(1010), 0);
        assert_eq!(cubic.epoch.unwrap().start, at(2008));
    }

    #[test]
    fn fast_convergence_lowers_the_plateau() {
        let config = CubicConfig { coarse: false, ..CubicConfig::default() };
        let mut cubic = Cubic::new(config, Span::from_ms(1));
        cubic.ssthresh(&Window { cwnd: 100, ssthresh: 10, ..Window::new(1) }, false);
        cubic.ssthresh(&Window { cwnd: 80, ssthresh: 10, ..Window::new(1) }, false);
        assert!((cubic.w_max - 68.0).abs() < 1e-9);
    }

    /// As measured on Linux: the pace that was found for a window still holds when the window is the same after a
    /// mark, and the epoch begins with the next packet of growth. So the window of 32 grows after 32 packets, and then
    /// after 33 each.
    #[test]
    fn a_pace_holds_across_a_mark() {
        let mut cubic = Cubic::new(CubicConfig::default(), Span::from_ms(4));
        let mut window = Window { cwnd: 46, ssthresh: 32, ..Window::new(1) };
        window.ssthresh = cubic.ssthresh(&window, true);
        window.cwnd = window.ssthresh;
        let mut now = Time::ZERO + Span::from_ms(8);
        let mut packets_to = |cubic: &mut Cubic, window: &mut Window, cwnd| {
            let mut packets = 0;
            while window.cwnd < cwnd {
                cubic.on_ack(window, &ack(now, 1));
                cubic.grow(window, &ack(now, 1));
                (packets, now) = (packets + 1, now + Span::from_us(2));
            }
            packets
        };
        assert_eq!([33, 34, 46].map(|cwnd| packets_to(&mut cubic, &mut window, cwnd)), [32, 32, 12 * 32]);
        window.ssthresh = cubic.ssthresh(&window, true);
        (window.cwnd, window.credit) = (window.ssthresh, 0);
        assert_eq!(window.cwnd, 32);
        assert_eq!([33, 34, 38].map(|cwnd| packets_to(&mut cubic, &mut window, cwnd)), [32, 33, 4 * 33]);
    }
}
