//! Translates `[tcp]` and the controllers' tables to a Linux kernel: sysctls of its network namespaces, attributes of
//! routes, parameters of modules and of our driver. Only keys that an experiment gives are set; the others keep the
//! kernel's defaults.

use crate::error::Problem;
use crate::host_kind::DefaultHosts;
use crate::places::Places;
use crate::settings::{RouteAttributes, set_sysctl};
use crate::tables::Experiment;
use firstlight_linux::{Parameter, Sysctl};
use firstlight_transport::cc::LinuxControl;
use firstlight_transport::{Autotune, CcConfig, TcpConfig};
use firstlight_units::Span;

/// The ticks of the kernels that there are: 1/HZ.
const TICKS: [Span; 3] = [Span::from_ms(1), Span::from_ms(4), Span::from_ms(10)];
/// The receive buffer that a kernel starts with.
const UNTUNED_BUFFER: u64 = 131_072;

/// The sysctls of every Linux host: a connection uses no metrics that an earlier one has saved, and buffers have the
/// sizes that a kernel with ample memory chooses, however little memory this one has.
const ALWAYS: [(&str, &str); 3] = [
    ("net.ipv4.tcp_no_metrics_save", "1"),
    ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
    ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
];

/// A key of `[tcp]` that a sysctl turns on and off. In order: the key's name, the sysctl below `net.ipv4`, its values
/// for off and on, the key's value in a configuration.
type Switch = (&'static str, &'static str, [&'static str; 2], fn(&TcpConfig) -> bool);

const SWITCHES: &[Switch] = &[
    ("ecn", "tcp_ecn", ["0", "1"], |tcp| tcp.ecn),
    ("frto", "tcp_frto", ["0", "2"], |tcp| tcp.frto),
    ("tail_loss_probe", "tcp_early_retrans", ["0", "3"], |tcp| tcp.tail_loss_probe),
    ("compress_sacks", "tcp_comp_sack_nr", ["0", "44"], |tcp| tcp.compress_sacks),
    ("small_queues", "tcp_autocorking", ["0", "1"], |tcp| tcp.small_queues),
    ("sack", "tcp_sack", ["0", "1"], |tcp| tcp.sack),
    ("timestamps", "tcp_timestamps", ["0", "1"], |tcp| tcp.timestamps),
];

/// The meaning of other keys on a Linux kernel, and what a switch means besides its sysctl.
const MEANINGS: &[(&str, &str)] = &[
    ("tcp.cc", "`net.ipv4.tcp_congestion_control`, and each connection's own"),
    ("tcp.initial_window", "`initcwnd` of the route"),
    ("tcp.min_window", "a parameter of our driver; refused with controllers whose least window is a constant of Linux"),
    ("tcp.max_window", "a parameter of our driver, a constant of Linux otherwise"),
    ("tcp.receive_window", "`net.ipv4.tcp_rmem`, the kernel's overhead per packet added"),
    (
        "tcp.autotune",
        "the buffer in `net.ipv4.tcp_rmem` that a connection starts with; `2012` is refused, and beside simulated \
         hosts, whose buffers it tunes, leaves a kernel's tuning as it is today",
    ),
    (
        "tcp.send_buffer",
        "no effect if the receive window is no larger, which already limits senders; otherwise refused, because a \
         kernel's buffer also counts overhead",
    ),
    ("tcp.rto_min", "`rto_min` of the route, in whole milliseconds"),
    (
        "tcp.rto_variance",
        "`rto_min` of the route: a kernel has one floor, under the variance term, which hides a `tcp.rto_min` that is \
         no higher; a higher one is refused",
    ),
    ("tcp.rto_initial", "a parameter of our driver, in whole milliseconds"),
    ("tcp.rto_max", "`net.ipv4.tcp_rto_max_ms`"),
    ("tcp.delayed_ack", "`0s`: `quickack` of the route; else a parameter of our driver, in whole milliseconds"),
    ("tcp.quick_acks", "refused: a kernel has no such setting"),
    ("tcp.tick", "the kernel that is booted"),
    (
        "tcp.ect_syn",
        "the kernel's DCTCP makes SYN and SYN-ACK ECN-capable, and other controllers make neither; what the key \
         excludes is not ECN-capable to the fabric, though the receiving kernel sees ECT",
    ),
    ("tcp.bursts", "`false`: the device layer segments nothing, so the stack sends packet by packet"),
    (
        "tcp.small_queues",
        "`false`: a packet's memory also goes back to its socket as soon as the interface takes the packet, so that \
         only what waits for a processor or for room counts; refused in dilated time",
    ),
    ("tcp.prr", "refused: a kernel always reduces so"),
    ("tcp.interactive", "`true`: receivers' sockets have `TCP_QUICKACK` off"),
    ("tcp.nagle", "`false`: `TCP_NODELAY` of sockets, those of `[[program]]` excepted"),
    ("cubic.coarse", "refused: a kernel has no such setting"),
];

/// The meaning of a key on a Linux kernel, where an experiment gives it. The reference has it for each key of `[tcp]`.
pub(crate) fn meaning(path: &str) -> Option<String> {
    let switch = SWITCHES.iter().find(|(key, ..)| path.strip_prefix("tcp.") == Some(key));
    let sysctl = switch.map(|(_, sysctl, ..)| format!("`net.ipv4.{sysctl}`"));
    let text = MEANINGS.iter().find(|(meant, _)| *meant == path).map(|(_, text)| text.to_string());
    let all: Vec<String> = sysctl.into_iter().chain(text).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// The keys that are meant for all Linux hosts, as their kernel has them.
#[derive(Debug)]
pub(crate) struct Kernel<'a> {
    tcp: &'a TcpConfig,
    places: &'a Places,
    /// Whether there are simulated hosts, which take the keys that no kernel has.
    simulated: bool,
    /// The sysctls in the order in which they are set.
    pub sysctls: Vec<Sysctl>,
    pub route: RouteAttributes,
    pub parameters: Vec<Parameter>,
    pub problems: Vec<Problem>,
}

impl<'a> Kernel<'a> {
    /// `controls` are what the congestion controls in use need.
    pub fn of(experiment: &'a Experiment, places: &'a Places, simulated: bool, controls: &[LinuxControl]) -> Self {
        let mut kernel = Kernel {
            tcp: &experiment.tcp.tcp,
            places,
            simulated,
            sysctls: vec![],
            route: RouteAttributes::default(),
            parameters: vec![],
            problems: vec![],
        };
        ALWAYS.iter().for_each(|(name, value)| set_sysctl(&mut kernel.sysctls, name, value));
        match experiment.hosts.kind {
            DefaultHosts::Dilated => kernel.of_machine(experiment.program.len(), controls),
            _ => {
                kernel.tick();
                kernel.parameters.extend(experiment.linux.cpu.parameters());
            }
        }
        kernel.windows();
        kernel.bounds(controls);
        kernel.timeouts();
        kernel.acks();
        kernel.switches();
        controls.iter().for_each(|control| kernel.control(control));
        kernel
    }

    fn has(&self, key: &str) -> bool {
        self.places.has(&format!("tcp.{key}"))
    }

    fn wrong(&mut self, key: &str, text: impl Into<String>) {
        self.problems.push(self.places.problem(&format!("tcp.{key}"), text));
    }

    /// A key that kernels do not have: an error where no simulated host takes it.
    fn cannot(&mut self, key: &str, why: &str) {
        if self.has(key) && !self.simulated {
            self.wrong(key, format!("a Linux kernel has no such setting: {why}; take it out"));
        }
    }

    fn sysctl(&mut self, name: &str, value: impl ToString) {
        set_sysctl(&mut self.sysctls, &format!("net.ipv4.{name}"), &value.to_string());
    }

    fn parameter(&mut self, module: &str, name: &str, value: impl ToString) {
        self.parameters.push(Parameter { module: module.into(), name: name.into(), value: value.to_string() });
    }

    /// Refuses keys that choose a kernel, and users: hosts in dilated time have those of the machine.
    fn of_machine(&mut self, programs: usize, controls: &[LinuxControl]) {
        if let Some(LinuxControl { table, .. }) = controls.iter().find(|control| control.needs_our_kernel) {
            let text = format!(
                "{table} needs our kernel, and hosts in dilated time have this machine's: use another, or Linux hosts \
                 in virtual time (hosts.kind = \"linux\")"
            );
            self.wrong("cc", text);
        }
        if !self.tcp.small_queues {
            self.cannot("small_queues", "in dilated time packets count for their sockets until they leave");
        }
        let chosen =
            [("tcp.tick", !self.simulated), ("linux.version", true), ("linux.modules", true), ("linux.patches", true)];
        for (path, _) in chosen.into_iter().filter(|(path, idle)| *idle && self.places.has(path)) {
            let text = "has no effect: hosts in dilated time have this machine's kernel; take it out";
            self.problems.push(self.places.problem(path, text));
        }
        if self.places.tables.contains_key("linux.cpu") {
            let text = "has no effect: hosts in dilated time have this machine's processors; take it out";
            self.problems.push(self.places.problem("linux.cpu", text));
        }
        if self.places.has("linux.ipv6") {
            let text = "has no effect: hosts in dilated time have IPv4 only; take it out";
            self.problems.push(self.places.problem("linux.ipv6", text));
        }
        if self.places.has("linux.memory") {
            let text = "has no effect: hosts in dilated time have this machine's memory; take it out";
            self.problems.push(self.places.problem("linux.memory", text));
        }
        if self.places.has("linux.writable") {
            let text = "has no effect: in dilated time programs write to all files of this machine; take it out";
            self.problems.push(self.places.problem("linux.writable", text));
        }
        let users = (0..programs).map(|index| format!("program.{index}.user"));
        for path in users.filter(|path| self.places.has(path)) {
            let text = "has no effect: in dilated time programs run as the user who starts the run; take it out";
            self.problems.push(self.places.problem(&path, text));
        }
    }

    fn tick(&mut self) {
        let tick = self.tcp.tick;
        if !TICKS.contains(&tick) {
            let text = format!("there is no kernel with a tick of {tick}: use 1ms, 4ms or 10ms (HZ=1000, 250, 100)");
            self.wrong("tick", text);
        }
    }

    fn windows(&mut self) {
        if self.has("initial_window") {
            self.route.set("initcwnd", &self.tcp.initial_window.to_string());
        }
        if self.tcp.autotune == Autotune::Year2012 {
            self.cannot("autotune", "it tunes buffers as those of today do");
        }
        let window = self.tcp.receive_window;
        if self.has("receive_window") {
            let buffer = self.tcp.receive_memory().min(i32::MAX as u64);
            let fixed = self.tcp.autotune == Autotune::Off;
            let first = if fixed { buffer } else { buffer.min(UNTUNED_BUFFER) };
            self.sysctl("tcp_rmem", format!("4096 {first} {buffer}"));
        } else if self.tcp.autotune == Autotune::Off {
            self.sysctl("tcp_rmem", "4096 6291456 6291456");
        }
        // Less than the peer's window is in flight without a send buffer, too.
        let window = self.has("receive_window").then_some(window);
        if self.tcp.send_buffer.zip(window).is_none_or(|(buffer, window)| window > buffer) {
            self.cannot(
                "send_buffer",
                "its buffer counts packets' memory too; give linux.sysctls an entry \"net.ipv4.tcp_wmem=4096 16384 \
                 524288\", or a tcp.receive_window that is not larger",
            );
        }
    }

    /// Bounds of the congestion window: constants that our driver makes parameters, of the stack and of some
    /// controllers.
    fn bounds(&mut self, controls: &[LinuxControl]) {
        if let Some(cap) = self.tcp.max_window {
            self.parameter("firstlight", "max_window", cap);
        }
        if self.has("min_window") {
            self.parameter("firstlight", "min_window", self.tcp.min_window);
        }
        if let Some(LinuxControl { table, .. }) = controls.iter().find(|control| !control.takes_min_window) {
            let all = CcConfig::taking_min_window().join(", ");
            let why = format!("the least window of its {table} is a constant, that of {all} can be set");
            self.cannot("min_window", &why);
        }
    }

    fn timeouts(&mut self) {
        self.least_timeout();
        if self.has("rto_max") {
            match milliseconds(self.tcp.rto_max) {
                Some(ms @ 1000..=120_000) => self.sysctl("tcp_rto_max_ms", ms),
                _ => self.wrong("rto_max", "a Linux host takes whole milliseconds from 1s to 120s"),
            }
        }
        self.constant("rto_initial", self.tcp.rto_initial, "timeout_init_ms", 60_000);
    }

    /// A kernel has one floor, the route's `rto_min`, under the variance term. Where that is as high as the timeout's
    /// own, the latter is never reached.
    fn least_timeout(&mut self) {
        let TcpConfig { rto_min: least, rto_variance: variance, .. } = *self.tcp;
        let (key, floor) = match variance {
            Some(variance) if variance >= least => ("rto_variance", Some(variance)),
            _ => ("rto_min", self.has("rto_min").then_some(least)),
        };
        if variance.is_some_and(|variance| variance < least) {
            let why = format!("the timeout and its variance term have one floor there, tcp.rto_min ({least})");
            self.cannot("rto_variance", &why);
        }
        match floor.map(milliseconds) {
            Some(Some(ms)) => self.route.set("rto_min", &format!("{ms}ms")),
            Some(None) => self.wrong(key, "a Linux host counts it in whole milliseconds: write \"1ms\" or more"),
            None => {}
        }
    }

    /// A constant of Linux that our driver makes a parameter, in milliseconds.
    fn constant(&mut self, key: &str, value: Span, name: &str, most: u64) {
        if !self.has(key) {
            return;
        }
        match milliseconds(value) {
            Some(ms) if ms <= most => self.parameter("firstlight", name, ms),
            _ => self.wrong(key, format!("a Linux host takes whole milliseconds from 1ms to {most}ms")),
        }
    }

    fn acks(&mut self) {
        if self.has("delayed_ack") && self.tcp.delayed_ack.is_zero() {
            self.route.set("quickack", "1");
        } else {
            // A kernel begins with a delay of 40 ms.
            self.constant("delayed_ack", self.tcp.delayed_ack, "delack_max_ms", 40);
        }
        self.cannot(
            "quick_acks",
            "it acknowledges the first 16 packets at once, or all with linux.route = \"quickack 1\"",
        );
    }

    fn switches(&mut self) {
        for (key, name, settings, on) in SWITCHES {
            if self.has(key) {
                self.sysctl(name, settings[usize::from(on(self.tcp))]);
            }
        }
    }

    /// Parameters of a module of Linux's own are set where their keys are given; those of ours always.
    fn control(&mut self, control: &LinuxControl) {
        for parameter in &control.parameters {
            let path = format!("{}.{}", control.table, parameter.key);
            if control.module.is_none() && !self.places.has(&path) {
                continue;
            }
            match &parameter.value {
                Ok(value) => self.parameter(parameter.module, parameter.name, value),
                Err(text) => self.problems.push(self.places.problem(&path, text.clone())),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::keys;
    use crate::{Linux, OverrideValue, Spec};
    use serde_json::json;
    use std::collections::BTreeSet;

    const PAIR: &str = include_str!("../../lab/tests/specs/pair.toml");

    /// Each key of `[tcp]` with another value than in the pair's experiment with ECN, which `ect_syn` needs, and the
    /// settings of a kernel that this changes. Where there are none, it changes connections or the device, which
    /// `lab/tests/linux_hosts.rs` tests.
    const GIVEN: &[(&str, &str, &[&str])] = &[
        ("cc", "newreno", &[]),
        ("initial_window", "20", &["initcwnd 20"]),
        ("min_window", "1", &["firstlight.min_window=1"]),
        ("max_window", "100", &["firstlight.max_window=100"]),
        // 1 MB and 832 B for each 8948 B of it.
        ("receive_window", "1MB", &["net.ipv4.tcp_rmem=4096 1092981 1092981"]),
        ("autotune", "false", &["net.ipv4.tcp_rmem=4096 6291456 6291456"]),
        ("send_buffer", "128kB", REFUSED),
        ("rto_min", "2ms", &["rto_min 2ms"]),
        ("rto_variance", "300ms", &["rto_min 300ms"]),
        ("rto_initial", "10ms", &["firstlight.timeout_init_ms=10"]),
        ("rto_max", "2s", &["net.ipv4.tcp_rto_max_ms=2000"]),
        ("delayed_ack", "0s", &["quickack 1"]),
        ("quick_acks", "17", REFUSED),
        ("tick", "1ms", &["kernel 1ms"]),
        ("ecn", "false", &["net.ipv4.tcp_ecn=0"]),
        ("ect_syn", "none", &[]),
        ("frto", "false", &["net.ipv4.tcp_frto=0"]),
        ("tail_loss_probe", "false", &["net.ipv4.tcp_early_retrans=0"]),
        ("compress_sacks", "false", &["net.ipv4.tcp_comp_sack_nr=0"]),
        ("bursts", "false", &[]),
        ("small_queues", "false", &["net.ipv4.tcp_autocorking=0"]),
        ("sack", "false", &["net.ipv4.tcp_sack=0"]),
        ("prr", "false", REFUSED),
        ("timestamps", "false", &["net.ipv4.tcp_timestamps=0"]),
        ("nagle", "true", &[]),
        ("interactive", "true", &[]),
    ];
    const REFUSED: &[&str] = &["refused"];

    fn read(set: &[(&str, &str)]) -> Result<Spec, String> {
        let set = [&[("tcp.ecn", "true")], set].concat();
        let set: Vec<_> =
            set.iter().map(|(key, value)| (key.to_string(), OverrideValue::Text((*value).into()))).collect();
        Spec::read(PAIR, "x.toml", &set).map_err(|error| error.to_string())
    }

    /// A key changes its own setting alone, but a receive window is not tuned where it is given.
    #[test]
    fn every_key_of_tcp_arrives_at_simulated_hosts() {
        let all = keys().into_iter().filter_map(|key| Some(key.path.strip_prefix("tcp.")?.to_string()));
        assert_eq!(all.collect::<BTreeSet<_>>(), GIVEN.iter().map(|(key, ..)| key.to_string()).collect());
        let table = |set: &[(&str, &str)]| json!(read(set).expect("simulated hosts take every key").tables.tcp);
        for (key, value, _) in GIVEN {
            let (mut expected, given) = (table(&[]), value.parse().unwrap_or(json!(value)));
            assert_ne!(expected[key], given, "{key}");
            expected[key] = given;
            if *key == "receive_window" {
                expected["autotune"] = json!(false);
            }
            assert_eq!(table(&[(&format!("tcp.{key}"), value)]), expected);
        }
    }

    /// The settings of a kernel, as text.
    fn settings(Linux { hosts, parameters, tick, .. }: Linux) -> BTreeSet<String> {
        let sysctls = hosts[0].sysctls.iter().map(|sysctl| format!("{}={}", sysctl.name, sysctl.value));
        let parameters = parameters.iter().map(|p| format!("{}.{}={}", p.module, p.name, p.value));
        let words: Vec<&str> = hosts[0].route.split(' ').collect();
        let route = words.chunks(2).map(|pair| pair.join(" "));
        sysctls.chain(parameters).chain(route).chain([format!("kernel {tick}")]).collect()
    }

    #[test]
    fn every_key_of_tcp_means_to_a_kernel_what_it_says() {
        let linux = |set: &[(&str, &str)]| {
            read(&[&[("hosts.kind", "linux")], set].concat()).map(|spec| settings(spec.linux.expect("Linux hosts")))
        };
        let without = linux(&[]).expect("the pair");
        for (key, value, expected) in GIVEN {
            let path = format!("tcp.{key}");
            let found = linux(&[(&path, value)]).map_or_else(
                |error| vec![if error.contains(&path) { "refused".into() } else { error }],
                |with| with.difference(&without).cloned().collect(),
            );
            assert_eq!(found, *expected, "{key}");
            let text = meaning(&path).unwrap_or_default();
            assert!(!text.is_empty(), "{key} has no meaning");
            for name in expected.iter().filter_map(|setting| setting.split(['=', ' ']).next()) {
                let named = if name.starts_with("firstlight.") { "a parameter of our driver" } else { name };
                assert!(text.contains(named), "the meaning of {key} says nothing of {name}: {text}");
            }
        }
    }
}
