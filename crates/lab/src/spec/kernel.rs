//! What `[tcp]` and the controllers' tables mean to a Linux kernel: settings of its network namespaces, attributes of
//! routes, parameters of modules and of our driver. Only what an experiment gives explicitly is set; the rest is the kernel's own.

use super::error::Problem;
use super::settings::{Setting, set};
use super::values::Values;
use firstlight_linux::Parameter;
use firstlight_units::Span;

/// The ticks of the kernels that there are: 1/HZ.
const TICKS: [Span; 3] = [Span::from_ms(1), Span::from_ms(4), Span::from_ms(10)];
/// Bytes of memory that a kernel counts for a received packet beside its payload (measured: 850 to 930 on Linux 7.2, for
/// MTUs of 1500 to 65535 B). It offers the part of its receive buffer that payload can fill.
const BESIDE_PAYLOAD: u64 = 890;
/// The receive buffer that a kernel starts with.
const UNTUNED_BUFFER: u64 = 131_072;
/// Of an IP packet: the headers of IP and TCP, with timestamps.
const HEADERS: u64 = 52;

/// Largest factor that reTCP's module takes.
const MOST_PERCENT: f64 = 10_000.0;

/// What every Linux host is told: nothing of an earlier connection's end is used by a later one, and buffers are what a
/// kernel with ample memory gives itself, however little this one has.
const ALWAYS: [(&str, &str); 3] = [
    ("net.ipv4.tcp_no_metrics_save", "1"),
    ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
    ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
];

/// The keys that are meant for all Linux hosts, as their kernel has them.
#[derive(Debug)]
pub(crate) struct Kernel<'a> {
    values: &'a Values,
    /// Whether there are simulated hosts, which take the keys that no kernel has.
    simulated: bool,
    /// In the order they are set.
    pub sysctls: Vec<Setting>,
    pub route: Vec<Setting>,
    pub parameters: Vec<Parameter>,
    pub problems: Vec<Problem>,
}

impl<'a> Kernel<'a> {
    /// `controls` are the kernel's names of the congestion controls in use.
    pub fn of(values: &'a Values, simulated: bool, controls: &[&str]) -> Self {
        let sysctls = ALWAYS.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let mut kernel = Kernel { values, simulated, sysctls, route: vec![], parameters: vec![], problems: vec![] };
        kernel.tick();
        kernel.windows();
        kernel.timeouts();
        kernel.acks();
        kernel.switches();
        kernel.cubic(controls.contains(&"cubic"));
        kernel.dctcp(controls.contains(&"dctcp"));
        kernel.retcp(controls.contains(&"retcp"));
        kernel.vegas(controls.contains(&"vegas"));
        kernel
    }

    fn wrong(&mut self, path: &str, text: String) {
        self.problems.push(self.values.problem(path, text));
    }

    /// A key that kernels do not have: an error where nobody else takes it.
    fn cannot(&mut self, path: &str, why: &str) {
        if self.values.has(path) && !self.simulated {
            self.wrong(path, format!("a Linux kernel has no such setting: {why}; take it out"));
        }
    }

    fn sysctl(&mut self, name: &str, value: impl ToString) {
        set(&mut self.sysctls, &format!("net.ipv4.{name}"), &value.to_string());
    }

    fn tick(&mut self) {
        let tick = self.values.span("tcp.tick");
        if !TICKS.contains(&tick) {
            let text = format!("there is no kernel with a tick of {tick}: use 1ms, 4ms or 10ms (HZ=1000, 250, 100)");
            self.wrong("tcp.tick", text);
        }
    }

    fn windows(&mut self) {
        if self.values.has("tcp.initial_window") {
            set(&mut self.route, "initcwnd", &self.values.packets("tcp.initial_window").to_string());
        }
        if self.values.has("tcp.receive_window") {
            let window = self.values.size("tcp.receive_window").get();
            let payload = self.values.size("hosts.mtu").get() - HEADERS;
            let buffer = (window + window * BESIDE_PAYLOAD / payload).min(i32::MAX as u64);
            let tuned = self.values.has("tcp.autotune") && self.values.flag("tcp.autotune");
            let first = if tuned { buffer.min(UNTUNED_BUFFER) } else { buffer };
            self.sysctl("tcp_rmem", format!("4096 {first} {buffer}"));
        } else if !self.values.flag("tcp.autotune") {
            self.sysctl("tcp_rmem", "4096 6291456 6291456");
        }
        // Less than the peer's window is in flight without it, too.
        let [buffer, window] = ["tcp.send_buffer", "tcp.receive_window"].map(|key| self.values.size_opt(key));
        if buffer.zip(window).is_none_or(|(buffer, window)| window > buffer) {
            self.cannot(
                "tcp.send_buffer",
                "its buffer counts packets' memory too; give linux.sysctls an entry \"net.ipv4.tcp_wmem=4096 16384 524288\", or a \
                 tcp.receive_window that is not larger",
            );
        }
    }

    fn timeouts(&mut self) {
        self.least_timeout();
        if self.values.has("tcp.rto_max") {
            match milliseconds(self.values.span("tcp.rto_max")) {
                Some(ms @ 1000..=120_000) => self.sysctl("tcp_rto_max_ms", ms),
                _ => self.wrong("tcp.rto_max", "a Linux host takes whole milliseconds from 1s to 120s".into()),
            }
        }
        self.constant("tcp.rto_initial", "timeout_init_ms", 60_000);
    }

    /// A kernel has one floor, the route's `rto_min`, under the variance term. Where that is as high as the timeout's own, the
    /// latter is never reached.
    fn least_timeout(&mut self) {
        let least = self.values.span("tcp.rto_min");
        let variance = self.values.span_opt("tcp.rto_variance");
        let (key, floor) = match variance {
            Some(variance) if variance >= least => ("tcp.rto_variance", Some(variance)),
            _ => ("tcp.rto_min", self.values.has("tcp.rto_min").then_some(least)),
        };
        if variance.is_some_and(|variance| variance < least) {
            let why =
                format!("its floor under the variance term is that of the timeout too, tcp.rto_min, here {least}");
            self.cannot("tcp.rto_variance", &why);
        }
        match floor.map(milliseconds) {
            Some(Some(ms)) => set(&mut self.route, "rto_min", &format!("{ms}ms")),
            Some(None) => self.wrong(key, "a Linux host counts it in whole milliseconds: write \"1ms\" or more".into()),
            None => {}
        }
    }

    /// A constant of Linux that our driver makes a parameter, in milliseconds.
    fn constant(&mut self, path: &str, name: &str, most: u64) {
        if !self.values.has(path) {
            return;
        }
        match milliseconds(self.values.span(path)) {
            Some(ms) if ms <= most => self.parameter("firstlight", name, ms),
            _ => self.wrong(path, format!("a Linux host takes whole milliseconds from 1ms to {most}ms")),
        }
    }

    fn acks(&mut self) {
        if self.values.has("tcp.delayed_ack") && self.values.span("tcp.delayed_ack").is_zero() {
            set(&mut self.route, "quickack", "1");
        } else {
            // It begins with a delay of 40 ms.
            self.constant("tcp.delayed_ack", "delack_max_ms", 40);
        }
        self.cannot(
            "tcp.quick_acks",
            "it acknowledges 16 packets at once; linux.route = \"quickack 1\" makes it all of them",
        );
    }

    fn switches(&mut self) {
        let switches = [
            ("tcp.ecn", "tcp_ecn", ["0", "1"]),
            ("tcp.frto", "tcp_frto", ["0", "2"]),
            ("tcp.tail_loss_probe", "tcp_early_retrans", ["0", "3"]),
            ("tcp.compress_sacks", "tcp_comp_sack_nr", ["0", "44"]),
        ];
        for (path, name, settings) in switches {
            if self.values.has(path) {
                self.sysctl(name, settings[usize::from(self.values.flag(path))]);
            }
        }
    }

    fn parameter(&mut self, module: &str, name: &str, value: impl ToString) {
        self.parameters.push(Parameter { module: module.into(), name: name.into(), value: value.to_string() });
    }

    fn cubic(&mut self, used: bool) {
        if !used {
            return;
        }
        if self.values.has("cubic.beta") {
            match (self.values.number("cubic.beta") * 1024.0).round() as u32 {
                // It divides by 1 - beta.
                1024.. => self.wrong("cubic.beta", "a Linux host takes less than 1: use at most 0.999".into()),
                beta => self.parameter("tcp_cubic", "beta", beta),
            }
        }
        for name in ["fast_convergence", "hystart"] {
            let path = format!("cubic.{name}");
            if self.values.has(&path) {
                self.parameter("tcp_cubic", name, u8::from(self.values.flag(&path)));
            }
        }
    }

    fn dctcp(&mut self, used: bool) {
        if used && self.values.has("dctcp.g") {
            let g = self.values.number("dctcp.g");
            match (0..=10u32).find(|shift| g == 1.0 / f64::from(1 << shift)) {
                Some(shift) => self.parameter("tcp_dctcp", "dctcp_shift_g", shift),
                None => self.wrong(
                    "dctcp.g",
                    format!(
                        "a Linux host takes 1, 0.5, 0.25 and so on down to 1/1024, not {g}: write for example 0.0625"
                    ),
                ),
            }
        }
        if used && self.values.has("dctcp.initial_alpha") {
            let alpha = (self.values.number("dctcp.initial_alpha") * 1024.0).round() as u32;
            self.parameter("tcp_dctcp", "dctcp_alpha_on_init", alpha);
        }
    }

    fn retcp(&mut self, used: bool) {
        for name in ["alpha", "beta"].into_iter().filter(|_| used) {
            let path = format!("retcp.{name}");
            let percent = self.values.number(&path) * 100.0;
            if percent > MOST_PERCENT {
                self.wrong(&path, format!("a Linux host takes at most {}", MOST_PERCENT / 100.0));
            } else if (percent - percent.round()).abs() > 1e-9 {
                self.wrong(&path, format!("a Linux host takes whole hundredths, not {}", percent / 100.0));
            }
            self.parameter("retcp", name, percent.round() as u32);
        }
    }

    fn vegas(&mut self, used: bool) {
        for name in ["alpha", "beta", "gamma"].into_iter().filter(|_| used) {
            let path = format!("vegas.{name}");
            if self.values.has(&path) {
                self.parameter("tcp_vegas", name, self.values.packets(&path));
            }
        }
    }
}

/// Whole milliseconds, at least one.
fn milliseconds(span: Span) -> Option<u64> {
    let millisecond = Span::from_ms(1).as_ps();
    let whole = span.as_ps().is_multiple_of(millisecond) && !span.is_zero();
    whole.then(|| span.as_ps() / millisecond)
}
