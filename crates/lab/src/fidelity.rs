//! How true a run in dilated time was: how late packets were handed over, and how busy the machine.
//!
//! A fabric in virtual time is exact. In dilated time the engine follows the machine's clock as well as it can. Its
//! lateness is measured, and a run with too much lateness is invalid.

use firstlight_spec::{Network, Spec};
use firstlight_units::Span;
use serde_json::{Value as Json, json};

/// Lateness is judged against this part of a night, or of the shortest round trip where there are no circuits.
const PART: u64 = 10;
/// Timers may be as late as Linux itself lets a program's be (prctl(2), PR_SET_TIMERSLACK: 50 us), in the hosts' time.
const TIMER_SLACK: Span = Span::from_us(50);
/// The share of packets, and of timers, that may be later.
const LATE_SHARE: f64 = 0.01;
/// The load of the engine's processor, above which it may be behind at any moment.
const MOST_LOAD: f64 = 0.9;
/// The load that a slower fabric is suggested for.
const GOOD_LOAD: f64 = 0.7;
/// Links that delay nothing are judged as if they were this long.
const LEAST_DELAY: Span = Span::from_ns(250);

/// Statistics of lateness, in nanoseconds of the machine's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lateness {
    /// How often it was looked at.
    pub count: u64,
    /// The median.
    pub median: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The largest.
    pub most: u64,
    /// The share that was later than its bound ([`Bounds`]), 0 to 1.
    pub share: f64,
}

/// How true a run in dilated time was.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fidelity {
    /// Packets that left the fabric: from when they were due until the host had them.
    pub delivered: Lateness,
    /// Packets that entered it: from when the engine had last looked until it took them in. They waited less.
    pub taken: Lateness,
    /// Timers on the hosts' processors.
    pub timers: Lateness,
    /// The engine's rounds.
    pub rounds: Lateness,
    /// Part of the time in which the engine had work, 0 to 1.
    pub load: f64,
    /// Part of the machine's time that its own host took away, 0 to 1 (steal time); only virtual machines lose some.
    pub stolen: f64,
    /// Packets that were lost between a host and the engine, which no queue of the fabric dropped.
    pub lost: u64,
}

impl Fidelity {
    /// The kinds of lateness, of each of which no more than [`LATE_SHARE`] may exceed its bound.
    fn parts(&self, spec: &Spec) -> [(&'static str, &'static str, Lateness, Span); 3] {
        let bounds = Bounds::of(spec);
        [
            ("packets_delivered", "packets were delivered", self.delivered, bounds.packets),
            ("packets_taken", "packets were taken in", self.taken, bounds.packets),
            ("timers", "timers on the hosts' processors went off", self.timers, bounds.timers),
        ]
    }

    /// Why the run's figures are not those of the experiment; nothing for a true run.
    pub fn problems(&self, spec: &Spec) -> Vec<String> {
        let mut problems: Vec<String> = (self.parts(spec).iter())
            .filter(|(_, _, lateness, _)| lateness.share > LATE_SHARE)
            .map(|(_, what, lateness, bound)| {
                format!(
                    "{:.1} % of {what} more than {} us late (p99: {} us)",
                    lateness.share * 100.0,
                    rounded(bound.as_us_f64()),
                    rounded(lateness.p99 as f64 / 1e3)
                )
            })
            .collect();
        if self.load > MOST_LOAD {
            problems.push(format!("the engine's processor was busy for {:.0} % of the time", self.load * 100.0));
        }
        if self.lost > 0 {
            problems.push(format!("{} packets were lost between hosts and engine", self.lost));
        }
        if let Some(last) = problems.last_mut() {
            last.push_str(&self.advice(spec));
        }
        problems
    }

    /// The time dilation factor that this run's measurements require.
    fn advice(&self, spec: &Spec) -> String {
        let times_late =
            |(_, _, lateness, bound): &(_, _, Lateness, Span)| lateness.p99 as f64 * 1e3 / bound.as_ps() as f64;
        let late = self.parts(spec).iter().map(times_late).fold(1.0, f64::max);
        let needed = (f64::from(spec.tables.time_scale) * late.max(self.load / GOOD_LOAD)).ceil();
        let idle = "stop other work on this machine";
        if needed > f64::from(spec.tables.time_scale) {
            return format!("; time_scale = {needed} would have been enough; or {idle}");
        }
        format!("; use a larger time_scale, or {idle}")
    }

    /// The measurements for the manifest, in microseconds of the machine's clock.
    pub fn json(&self, spec: &Spec) -> Json {
        let us = |ns: u64| ns as f64 / 1e3;
        let lateness = |lateness: &Lateness, bound: Span| {
            json!({
                "bound_us": bound.as_us_f64(),
                "count": lateness.count,
                "median_us": us(lateness.median),
                "p99_us": us(lateness.p99),
                "max_us": us(lateness.most),
                "late_share": lateness.share,
            })
        };
        let mut json = json!({
            "tdf": spec.tables.time_scale,
            "late_share_allowed": LATE_SHARE,
        });
        for (name, _, part, bound) in self.parts(spec) {
            json[name] = lateness(&part, bound);
        }
        json["rounds"] = lateness(&self.rounds, Bounds::of(spec).packets);
        json["load"] = json!(self.load);
        json["stolen"] = json!(self.stolen);
        json["packets_lost"] = json!(self.lost);
        json
    }
}

/// A number of microseconds for messages: whole ones, hundredths below 10.
fn rounded(us: f64) -> String {
    format!("{us:.*}", if us < 10.0 { 2 } else { 0 })
}

/// The largest permitted lateness on the machine's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Packets may be this late: the TDF times a tenth of the shortest night or, without circuits, round trip.
    pub packets: Span,
    /// Timers may be this late: the TDF times [`TIMER_SLACK`], or as late as packets if that is more.
    pub timers: Span,
}

impl Bounds {
    /// The bounds of an experiment.
    pub fn of(spec: &Spec) -> Self {
        let packets = packet_bound(spec);
        Bounds { packets, timers: packets.max(TIMER_SLACK * u64::from(spec.tables.time_scale)) }
    }
}

/// The largest permitted lateness of packets ([`Bounds::packets`]).
fn packet_bound(spec: &Spec) -> Span {
    let grain = match &spec.network {
        Network::Hybrid(hybrid) => {
            let nights = hybrid.week.days().iter().map(|day| day.night);
            let control = hybrid.control.iter().map(|control| control.night);
            nights.chain(control).filter(|night| !night.is_zero()).min().unwrap_or(hybrid.links.delay * 4)
        }
        // There and back over two links.
        Network::Graph(graph) => {
            let delays = graph.topology.nics().iter().map(|nic| nic.wire.delay);
            delays.min().unwrap_or(LEAST_DELAY).max(LEAST_DELAY) * 4
        }
    };
    Span::from_ps(grain.as_ps() / PART) * u64::from(spec.tables.time_scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = r#"
duration = "10ms"
time_scale = 20
[fabric]
kind = "hybrid"
racks = 3
hosts_per_rack = 2
[hosts]
rate = "10Gbps"
delay = "1us"
[packet]
rate = "10Gbps"
delay = "5us"
[circuit]
rate = "80Gbps"
delay = "30us"
[voq]
small = 16
[schedule]
kind = "strobe"
day = "180us"
night = "20us"
[[flows]]
from = "rack0"
to = "rack1"
"#;

    fn spec() -> Spec {
        Spec::read(HYBRID, "t.toml", &[]).unwrap()
    }

    fn late(share: f64, p99_us: u64) -> Lateness {
        Lateness { count: 1000, median: 1000, p99: p99_us * 1000, most: p99_us * 2000, share }
    }

    #[test]
    fn bounds_are_stretched_by_the_tdf() {
        assert_eq!(Bounds::of(&spec()), Bounds { packets: Span::from_us(40), timers: Span::from_ms(1) });
    }

    #[test]
    fn a_run_that_kept_up_is_valid() {
        let fidelity = Fidelity { delivered: late(0.0099, 39), load: 0.5, ..Fidelity::default() };
        assert!(fidelity.problems(&spec()).is_empty());
    }

    #[test]
    fn late_packets_make_it_invalid_and_a_larger_factor_is_named() {
        let fidelity = Fidelity { delivered: late(0.02, 100), taken: late(0.011, 41), ..Fidelity::default() };
        assert_eq!(
            fidelity.problems(&spec()),
            [
                "2.0 % of packets were delivered more than 40 us late (p99: 100 us)",
                "1.1 % of packets were taken in more than 40 us late (p99: 41 us); \
                 time_scale = 50 would have been enough; or stop other work on this machine",
            ]
        );
        let json = fidelity.json(&spec());
        assert_eq!(
            (&json["timers"]["bound_us"], &json["packets_delivered"]["bound_us"]),
            (&json!(1000.0), &json!(40.0))
        );
        assert_eq!(json["packets_delivered"]["late_share"], json!(0.02));
    }

    #[test]
    fn timers_may_be_as_late_as_packets() {
        let text = HYBRID.replace("night = \"20us\"", "night = \"1ms\"");
        let spec = Spec::read(&text, "t.toml", &[]).unwrap();
        assert_eq!(Bounds::of(&spec), Bounds { packets: Span::from_ms(2), timers: Span::from_ms(2) });
    }

    #[test]
    fn timers_may_be_as_late_as_linux_lets_them_be() {
        let fidelity = Fidelity { timers: late(0.011, 2000), ..Fidelity::default() };
        assert_eq!(
            fidelity.problems(&spec()),
            ["1.1 % of timers on the hosts' processors went off more than 1000 us late (p99: 2000 us); \
              time_scale = 40 would have been enough; or stop other work on this machine"]
        );
    }

    #[test]
    fn a_busy_engine_and_lost_packets_make_it_invalid() {
        let fidelity = Fidelity { load: 0.95, lost: 3, ..Fidelity::default() };
        assert_eq!(
            fidelity.problems(&spec()),
            [
                "the engine's processor was busy for 95 % of the time",
                "3 packets were lost between hosts and engine; \
                 time_scale = 28 would have been enough; or stop other work on this machine",
            ]
        );
    }
}
