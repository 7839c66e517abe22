//! The registry of an experiment's keys: from it come the detection of unknown keys, the suggestions, the defaults and
//! the reference (`docs/reference/spec.md`).

use super::control::NAMES;
use super::fabric_keys::{self, HYBRID, PACKET, SWITCHES};
use super::hosts::HostKind;
use super::keys::{Fallback, Key, Kind, When};
use super::red;
use firstlight_transport::TcpConfig;
use firstlight_transport::cc::{CubicConfig, DctcpConfig, ReTcpConfig, SwiftConfig, TimelyConfig, VegasConfig};
use std::fmt;
use std::sync::OnceLock;

/// Names of schedules.
pub(crate) const SCHEDULES: &[&str] =
    &["strobe", "etalon", "list", "bvn", "solstice", "eclipse", "hotspot", "edge-colouring"];
/// Those that are computed week by week.
const COMPUTED: When = When::Schedule(&["bvn", "solstice", "eclipse", "hotspot", "edge-colouring"]);
const ETALON: When = When::Schedule(&["etalon"]);
pub(super) const LIST: When = When::Schedule(&["list"]);
/// Where demand is seen.
const DEMAND: &[&str] = &["voq", "adu", "oracle"];
/// Where packets are captured.
pub(crate) const SIDES: &[&str] = &["sender", "receiver", "both"];
/// Most packets that a queue can be given.
pub(super) const MOST_PACKETS: u64 = 1 << 24;
/// Most racks of a fabric: there is a VOQ for each pair.
pub(super) const MOST_RACKS: u64 = 4096;
/// Most hosts of a fabric: a host's number has 16 bits.
pub(crate) const MOST_HOSTS: u64 = 65_535;

/// All keys, in the order of the reference.
pub fn keys() -> &'static [Key] {
    static KEYS: OnceLock<Vec<Key>> = OnceLock::new();
    KEYS.get_or_init(|| {
        let groups = [
            experiment(),
            fabric_keys::fabric(),
            fabric_keys::hosts(),
            super::adapter::keys(),
            super::qcn::keys(),
            hybrid(),
            schedule(),
            queues(),
            fabric_keys::switch(),
            super::pfc::keys(),
            tcp(),
            controllers(),
            delay_controllers(),
            linux(),
            flows(),
            super::workload::keys(),
            programs(),
            measure(),
        ];
        groups.into_iter().flatten().collect()
    })
}

/// A table of the experiment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    /// Dotted path; `*` stands for an index of a list.
    pub path: &'static str,
    /// What it holds.
    pub doc: &'static str,
    /// When its keys have an effect.
    pub when: When,
}

const fn table(path: &'static str, when: When, doc: &'static str) -> Table {
    Table { path, doc, when }
}

/// All tables, in the order of the reference.
pub(crate) const TABLES: &[Table] = &[
    table("", When::Always, "The experiment"),
    table("fabric", When::Always, "The network's shape"),
    table("hosts", When::Always, "The hosts' links, and what may pass them"),
    table("links", SWITCHES, "The links between switches"),
    table("packet", HYBRID, "The packet network of a hybrid fabric"),
    table("circuit", HYBRID, "The circuit switch of a hybrid fabric"),
    table("schedule", HYBRID, "When the circuit switch connects whom, week after week"),
    table("schedule.days.*", LIST, "One day of a list, after its night"),
    table(
        "control",
        COMPUTED,
        "The control loop: at the start of each week demand is estimated, and the schedule computed that the next week \
         follows. The first week has no circuits",
    ),
    table("voq", HYBRID, "The virtual output queues: one for each pair of racks, at the source's ToR"),
    table(
        "voq.red",
        HYBRID,
        "RED on the average length of each VOQ, instead of `voq.ecn_small` and `voq.ecn_large`. Keys as of `[switch.red]`; idle times are \
         counted in packets at `packet.rate`",
    ),
    table(
        "stamps",
        When::Always,
        "Timestamps that the hosts' interfaces take for congestion control by latency, and of probes",
    ),
    table("pacer", When::Always, "HULL's pacer at each host's interface (NSDI'12). The table's presence turns it on"),
    table("adapter", When::Always, "The buffers of the hosts' interfaces"),
    table(
        "qcn",
        When::Always,
        "QCN (IEEE 802.1Qau): switches' queues, or VOQs, notify senders' interfaces of congestion, and these limit flows. The \
         table's presence turns it on",
    ),
    table("switch", PACKET, "The switches and their ports"),
    table("switch.red", When::OneQueue, "RED (Floyd and Jacobson, 1993), instead of `switch.ecn`"),
    table("switch.phantom", When::OneQueue, "HULL's phantom queue, instead of `switch.ecn`"),
    table(
        "switch.classes.*",
        PACKET,
        "What ports do with a traffic class: the first table is class 0's, each next one goes before it. Without any, all \
         packets share one queue",
    ),
    table("switch.classes.*.red", PACKET, "As `[switch.red]`, for the class"),
    table("switch.classes.*.phantom", PACKET, "As `[switch.phantom]`, for the class"),
    table(
        "pfc",
        When::Always,
        "Lossless Ethernet: links are paused before a buffer overflows. The table's presence turns it on",
    ),
    table("marks", HYBRID, "ECE marks on returning packets, which reTCP needs. The table's presence turns them on"),
    table(
        "tcp",
        When::Always,
        "The hosts' TCP. Its times are of the hosts' own clocks: `time_scale` does not stretch them",
    ),
    table("cubic", When::Uses("cubic"), "CUBIC (RFC 9438)"),
    table("dctcp", When::Uses("dctcp"), "DCTCP (RFC 8257)"),
    table("retcp", When::Uses("retcp"), "reTCP (Etalon, NSDI'20, section 5.3)"),
    table(
        "dx",
        When::Uses("dx"),
        "DX (USENIX ATC'15). Its times are of the hosts' own clocks, as those of `[tcp]` are",
    ),
    table("vegas", When::Uses("vegas"), "TCP Vegas (Brakmo and Peterson, 1995)"),
    table("timely", When::Uses("timely"), "TIMELY (SIGCOMM'15). Its times and rates are of the hosts' own clocks"),
    table("swift", When::Uses("swift"), "Swift (SIGCOMM'20). Its times are of the hosts' own clocks"),
    table(
        "linux",
        When::Linux,
        "Settings of all Linux hosts. What is given explicitly under `[tcp]` and the controllers' tables comes before them",
    ),
    table("linux.hosts.*", When::Linux, "Settings of some Linux hosts. A later entry comes after an earlier one"),
    table("flows.*", When::Always, "Who sends what to whom; at least one, unless there is a workload or a program"),
    table("workload.*", When::Always, super::workload::DOC),
    table(
        "program.*",
        When::LinuxDefault,
        "A program that runs on a Linux host. Other hosts have their names there: `host17`, `rack1.host1`",
    ),
    table("measure", When::Always, "What is recorded"),
    table("sweep", When::Always, "Lists of values for other keys: `firstlight sweep` runs every combination"),
];

pub(super) fn key(path: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key { path, kind, fallback: Fallback::Required, when: When::Always, doc }
}

impl Key {
    pub(super) fn or(mut self, value: impl fmt::Display) -> Self {
        let value = value.to_string();
        let bare = matches!(self.kind, Kind::Count { .. } | Kind::Number { .. } | Kind::Flag | Kind::Sizes);
        self.fallback = Fallback::Value(if bare { value } else { format!("\"{value}\"") });
        self
    }

    pub(super) fn or_none(mut self, meaning: &'static str) -> Self {
        self.fallback = Fallback::Absent(meaning);
        self
    }

    pub(super) fn when(mut self, when: When) -> Self {
        self.when = when;
        self
    }
}

/// What a flow sends.
pub(super) const AMOUNT: Kind = Kind::Size { least: 1, most: 1 << 60 };
/// A traffic class: the upper three bits of DSCP.
pub(super) const CLASS: Kind = Kind::Count { least: 0, most: 7, of: "" };

const fn packets(least: u64) -> Kind {
    Kind::Count { least, most: MOST_PACKETS, of: "packets" }
}

pub(super) const SPAN: Kind = Kind::Time { positive: false };
pub(super) const POSITIVE: Kind = Kind::Time { positive: true };

fn experiment() -> Vec<Key> {
    vec![
        key("name", Kind::Text, "Name of the experiment, in tables and reports").or_none("the file's name"),
        key("seed", Kind::Count { least: 0, most: i64::MAX as u64, of: "" }, "Seed of every random stream").or(1),
        key(
            "duration",
            POSITIVE,
            "How long the network runs. A run in which every flow is sized ends when all are complete, if that is earlier",
        ),
        key("warmup", SPAN, "The first part of `duration`, which is not measured").or("0s"),
        key(
            "time_scale",
            Kind::Count { least: 1, most: 1_000_000, of: "" },
            "Stretches every time of the fabric against the hosts' clocks, as a testbed under time dilation does to its \
             kernels. Results stay in the experiment's own times",
        )
        .or(1),
    ]
}

fn hybrid() -> Vec<Key> {
    vec![
        key("packet.rate", Kind::Rate, "Rate of each rack's uplink and downlink"),
        key("packet.delay", SPAN, "Propagation delay of each of these links"),
        key(
            "packet.switch_queue",
            Kind::Count { least: 1, most: 1 << 20, of: "packets" },
            "How many packets each input of a downlink holds; what does not fit waits at the VOQ",
        )
        .or(3),
        key(
            "packet.switched",
            Kind::Flag,
            "`false`: the uplink ends at the other ToR, without a switch and a downlink. Two racks only",
        )
        .or(true),
        key("circuit.rate", Kind::Rate, "Rate of a circuit"),
        key("circuit.delay", SPAN, "Propagation delay of a circuit, from ToR to ToR"),
    ]
}

fn schedule() -> Vec<Key> {
    vec![
        key(
            "schedule.kind",
            Kind::Name(SCHEDULES),
            "`strobe`: each rack meets each other once a week. `etalon`: the three-rack stand-in of Etalon's testbed. `list`: \
             `[[schedule.days]]`. The others compute each week from demand, see `[control]`: `bvn` (Birkhoff-von Neumann), \
             `solstice`, `eclipse`, `hotspot` (maximum-weight matching), `edge-colouring`",
        ),
        key("schedule.week", POSITIVE, "How long a week is, nights and days").when(COMPUTED),
        key("schedule.day", POSITIVE, "How long a matching is up").when(When::CommonDay),
        key("schedule.night", SPAN, "How long the circuit switch reconfigures before each day"),
        key(
            "schedule.stands_for",
            Kind::Count { least: 3, most: MOST_HOSTS, of: "racks" },
            "How many racks the three stand for: a week has one day less",
        )
        .when(ETALON),
        key("schedule.least_day", POSITIVE, "The shortest day").or_none("the same as `schedule.night`").when(COMPUTED),
        key(
            "control.demand",
            Kind::Name(DEMAND),
            "Where demand is seen. `voq`: what waits in the VOQs. `adu`: what applications have written and has not yet passed \
             the VOQ. `oracle`: as `adu`, with what flows that start before the next week's end are going to write; of programs \
             it knows no more than what they have written",
        )
        .or("voq"),
        key(
            "control.compute",
            SPAN,
            "How long it takes to compute a schedule; one that is not there by the week's end is followed a week later. \
             `firstlight schedule` measures it",
        )
        .or("0s"),
        key(
            "schedule.days.*.matching",
            Kind::Matching,
            "The pairs of racks that have a circuit, as `[[0, 1], [1, 0]]`: each rack sends to one and receives from one, or is idle",
        ),
        key("schedule.days.*.day", POSITIVE, "How long it is up").or_none("`schedule.day`"),
    ]
}

fn queues() -> Vec<Key> {
    let mut keys = vec![
        key("voq.small", packets(1), "Capacity of a VOQ").or_none(
            "with `[pfc]` no limit: a VOQ takes what the accounts of hosts' links let in. Without, it must be given",
        ),
        key("voq.large", packets(1), "Capacity from `voq.advance` before the pair's day until its end")
            .or_none("VOQs keep their size"),
        key("voq.advance", SPAN, "How long before its day a VOQ is enlarged").or_none("VOQs keep their size"),
        key("voq.ecn_small", packets(1), "Mark ECN-capable packets when the VOQ would exceed this, while it is small")
            .or_none("no marks"),
        key("voq.ecn_large", packets(1), "The same while it is large").or_none("no marks").when(When::Large),
    ];
    keys.extend(red::keys([
        "voq.red.min",
        "voq.red.max",
        "voq.red.probability",
        "voq.red.weight",
        "voq.red.gentle",
        "voq.red.drop_beyond",
    ]));
    keys.push(key("marks.advance", SPAN, "How long before a day the marks begin").or("0s"));
    keys
}

fn tcp() -> Vec<Key> {
    let config = TcpConfig::default();
    vec![
        key(
            "tcp.cc",
            Kind::Name(NAMES),
            "Congestion control of flows that name none, and of programs' connections. Simulated hosts have `newreno` (or \
             `reno`), `cubic`, `dctcp`, `retcp`, `vegas`, `dx`, `timely` and `swift`; Linux hosts have all but the last three",
        )
        .or("cubic")
        .when(When::DefaultCc),
        key("tcp.initial_window", packets(1), "Initial congestion window (RFC 6928)").or(config.initial_window),
        key(
            "tcp.receive_window",
            Kind::Size { least: 1, most: 1 << 30 },
            "Largest receive window; where it is given, it is not tuned unless `tcp.autotune` says so",
        )
        .or(config.receive_window),
        key(
            "tcp.autotune",
            Kind::Flag,
            "The receive window is tuned to what arrives in a round trip, up to `tcp.receive_window`; false: it is fixed",
        )
        .or(config.autotune),
        key(
            "tcp.send_buffer",
            Kind::Size { least: 1, most: 1 << 30 },
            "The most that a sender's stack holds of what is not acknowledged. A stack that tunes its buffer to twice the \
             congestion window is held back at the largest size alone: give that",
        )
        .or_none("as much as the application has"),
        key("tcp.rto_min", POSITIVE, "The shortest retransmission timeout: max(SRTT + max(4 RTTVAR, `tcp.rto_variance`), this)")
            .or(config.rto_min),
        key("tcp.rto_variance", SPAN, "Floor under the variance term of the retransmission timeout")
            .or_none("the same as `tcp.rto_min`"),
        key("tcp.rto_initial", POSITIVE, "Timeout before the first RTT sample (RFC 6298)").or(config.rto_initial),
        key("tcp.rto_max", POSITIVE, "Ceiling of the backed-off timeout").or(config.rto_max),
        key("tcp.delayed_ack", SPAN, "Longest delay of an ACK").or(config.delayed_ack),
        key(
            "tcp.quick_acks",
            Kind::Count { least: 0, most: MOST_PACKETS, of: "packets" },
            "How many packets are acknowledged at once when a connection starts",
        )
        .or(config.quick_acks),
        key(
            "tcp.tick",
            SPAN,
            "Tick of the hosts' clocks (a kernel's 1/HZ), on which timers expire and CUBIC evaluates its curve; zero: exact. \
             It chooses the kernel of Linux hosts, which has `1ms`, `4ms` or `10ms`",
        )
        .or(config.tick),
        key("tcp.ecn", Kind::Flag, "Negotiate ECN (RFC 3168). DCTCP does so by itself").or(config.ecn),
        key("tcp.frto", Kind::Flag, "Detect spurious timeouts (F-RTO, RFC 5682)").or(config.frto),
        key("tcp.tail_loss_probe", Kind::Flag, "Send tail loss probes (RFC 8985)").or(config.tail_loss_probe),
        key(
            "tcp.compress_sacks",
            Kind::Flag,
            "Hold back ACKs that only report more data out of order, as Linux does since 4.18",
        )
        .or(config.compress_sacks),
        key(
            "tcp.bursts",
            Kind::Flag,
            "New data go out in pieces of up to 64 KiB, as hosts with segmentation offload send them; false: packet by packet, as \
             ns-2 has it",
        )
        .or(config.bursts),
    ]
}

fn controllers() -> Vec<Key> {
    let (cubic, dctcp, retcp) = (CubicConfig::default(), DctcpConfig::default(), ReTcpConfig::default());
    let share = Kind::Number { least: 0.0, most: 1.0 };
    vec![
        key("cubic.beta", share, "The window's factor at congestion").or(cubic.beta),
        key(
            "cubic.fast_convergence",
            Kind::Flag,
            "Give up bandwidth faster when the window shrinks from one congestion to the next",
        )
        .or(cubic.fast_convergence),
        key("cubic.hystart", Kind::Flag, "Leave slow start by HyStart").or(cubic.hystart),
        key(
            "cubic.coarse",
            Kind::Flag,
            "Evaluate the curve as coarsely as Linux does, once per `tcp.tick`; false: at every ACK, as in RFC 9438",
        )
        .or(cubic.coarse)
        .when(When::SimulatedFlow),
        key("dctcp.g", share, "Gain of the moving average of the marked share").or(dctcp.g),
        key("dctcp.initial_alpha", share, "The estimate before the first window").or(dctcp.initial_alpha),
        key(
            "retcp.alpha",
            Kind::Number { least: 1.0, most: 1000.0 },
            "The window's factor when a circuit is announced",
        )
        .or(retcp.alpha),
        key("retcp.beta", share, "The window's factor when it ends").or(retcp.beta),
    ]
}

/// Controllers that see delay.
fn delay_controllers() -> Vec<Key> {
    let share = Kind::Number { least: 0.0, most: 1.0 };
    let (vegas, timely, swift) = (VegasConfig::default(), TimelyConfig::default(), SwiftConfig::default());
    vec![
        key("dx.headroom", SPAN, "An average queueing delay below this counts as none")
            .or_none("what a packet of `hosts.mtu` takes at `hosts.rate`"),
        key("vegas.alpha", packets(0), "The window grows while fewer packets of the flow wait in queues").or(vegas.alpha),
        key("vegas.beta", packets(0), "It shrinks while more do").or(vegas.beta),
        key("vegas.gamma", packets(0), "Slow start ends when more do").or(vegas.gamma),
        key("timely.line_rate", Kind::Rate, "The first rate, and the largest")
            .or_none("`hosts.rate`, by the hosts' clocks"),
        key("timely.step", Kind::Rate, "Additive step of the rate, and the smallest rate").or(timely.step),
        key("timely.beta", share, "Factor of decreases").or(timely.beta),
        key("timely.alpha", share, "Weight of the newest difference between round-trip times").or(timely.alpha),
        key("timely.t_low", SPAN, "Below this round-trip time the rate grows").or(timely.t_low),
        key("timely.t_high", SPAN, "Above this round-trip time the rate shrinks").or(timely.t_high),
        key("timely.min_rtt", POSITIVE, "The round-trip time that the gradient is relative to").or(timely.min_rtt),
        key("timely.segment", Kind::Size { least: 1, most: 1 << 20 }, "How much goes out at once").or(timely.segment),
        key(
            "swift.base_target",
            POSITIVE,
            "Target of the round-trip time in the fabric, for a large window. It must be above that of the empty path, hops \
             and all, or windows fall below a packet",
        )
        .or(swift.base_target),
        key("swift.fs_range", SPAN, "What the target grows by at most for small windows").or(swift.fs_range),
        key(
            "swift.fs_min_cwnd",
            Kind::Number { least: 0.001, most: 1.0 },
            "The window in packets at which it has grown by all of that",
        )
        .or(swift.fs_min_cwnd),
        key(
            "swift.fs_max_cwnd",
            Kind::Number { least: 2.0, most: 1e6 },
            "The window in packets up to which it grows",
        )
        .or(format!("{:?}", swift.fs_max_cwnd)),
        key(
            "swift.ai",
            Kind::Number { least: 0.0, most: 100.0 },
            "Additive increase of the window in packets per round trip",
        )
        .or(format!("{:?}", swift.ai)),
        key("swift.beta", share, "Factor of decreases").or(swift.beta),
        key("swift.max_mdf", share, "Largest share of the window that a decrease takes").or(swift.max_mdf),
    ]
}

fn linux() -> Vec<Key> {
    let sysctls = "Settings of the kernel in each host's network namespace, set in this order";
    let route = "Attributes of the route to the other hosts, as `ip route` takes them";
    vec![
        key(
            "linux.version",
            Kind::Version,
            "Version of their kernel: `6.12` is any 6.12, `6.12.117` this one; `firstlight kernel list` shows what is built",
        )
        .or_none("the newest that is built"),
        key("linux.sysctls", Kind::Sysctls, sysctls).or_none("none"),
        key("linux.route", Kind::Route, route).or_none("none"),
        key(
            "linux.hosts.*.on",
            Kind::Hosts,
            "Which hosts: `host3`, `rack0.host3`, `rack0` (each of its hosts) or `all`",
        ),
        key("linux.hosts.*.sysctls", Kind::Sysctls, "As `linux.sysctls`, set after those").or_none("none more"),
        key("linux.hosts.*.route", Kind::Route, "As `linux.route`; an attribute replaces the same one there")
            .or_none("none more"),
        key("linux.hosts.*.mtu", Kind::Size { least: 100, most: 65_535 }, "Largest IP packet that they send")
            .or_none("`hosts.mtu`"),
        key(
            "linux.hosts.*.cc",
            Kind::Name(NAMES),
            "Congestion control of flows that they send and that name none, and of programs' connections",
        )
        .or_none("`tcp.cc`"),
    ]
}

fn programs() -> Vec<Key> {
    vec![
        key("program.*.on", Kind::Hosts, "Where: `host3`, `rack0.host3`; `rack0` or `all`: one on each of these hosts"),
        key(
            "program.*.run",
            Kind::Text,
            "The command line, for `/bin/sh`. It has its host's name as `FIRSTLIGHT_HOST` and the experiment's folder as \
             `FIRSTLIGHT_EXPERIMENT`. A file `NAME.csv` that it leaves in its working directory becomes a table of the \
             result. Hosts that no flow and no program is on are there if a command line names them",
        ),
        key("program.*.name", Kind::Text, "Names its output, `programs/<name>.out` and `.err`, among the results")
            .or_none("the command's, with the host's"),
        key("program.*.start", SPAN, "When it starts").or("0s"),
        key(
            "program.*.server",
            Kind::Flag,
            "It runs until the run's end, which does not wait for it, and is ended then. Any other program must end with \
             exit code 0",
        )
        .or(false),
    ]
}

fn flows() -> Vec<Key> {
    let amount = AMOUNT;
    vec![
        key(
            "flows.*.from",
            Kind::Hosts,
            "Senders: `host3`, `rack0.host3`, `rack0` (each of its hosts) or `all`. Hosts are counted from 0, `host3` over the whole fabric",
        ),
        key(
            "flows.*.to",
            Kind::Hosts,
            "Receivers, in the same form. Rack to rack: each host to its counterpart; rack or `all` to a host: an incast",
        ),
        key("flows.*.hosts", Kind::Name(HostKind::NAMES), "Whose TCP both ends are").or_none("`hosts.kind`"),
        key("flows.*.cc", Kind::Name(NAMES), "Congestion control").or_none("`tcp.cc`, or the sending Linux host's own"),
        key("flows.*.size", amount, "How much each flow sends").or_none("without `total` too: sends until the end"),
        key(
            "flows.*.total",
            amount,
            "How much the flows of this entry send together, in equal shares; instead of `size`",
        )
        .or_none("see `size`"),
        key("flows.*.start", SPAN, "When they start").or("0s"),
        key("flows.*.jitter", SPAN, "Each starts at random within this span after `start`").or("0s"),
        key(
            "flows.*.count",
            Kind::Count { least: 1, most: 10_000, of: "flows" },
            "How many flows for each pair of hosts",
        )
        .or(1),
        key("flows.*.class", CLASS, "Traffic class of their packets, in both directions").or(0),
    ]
}

fn measure() -> Vec<Key> {
    vec![
        key("measure.pair", Kind::Pair, "The pair of racks whose latency, circuit utilization and series are measured")
            .or_none("that of the first flow between racks")
            .when(HYBRID),
        key(
            "measure.queues",
            Kind::Texts,
            "Ports whose queues are watched, as table `ports` names them: `host2.port`, `left->right`",
        )
        .or_none("none")
        .when(PACKET),
        key("measure.queue_samples", POSITIVE, "Sample the watched queues this often")
            .or_none("no samples")
            .when(When::Queues),
        key("measure.throughput", POSITIVE, "Tell what each flow received in each interval of this length")
            .or_none("no such table"),
        key("measure.probes", Kind::Flag, "Tell each packet of a probe, and not their numbers alone")
            .or(false)
            .when(When::Probes),
        key("measure.rate_limiters", Kind::Flag, "Tell each change of a rate that QCN limits")
            .or(false)
            .when(When::Qcn),
        key("measure.series", POSITIVE, "Sample sequence number and VOQ length of the pair this often")
            .or_none("no series")
            .when(HYBRID),
        key(
            "measure.fold",
            Kind::Count { least: 1, most: 1000, of: "weeks" },
            "How many weeks the series covers; averaged over all repetitions",
        )
        .or(3)
        .when(When::Series),
        key(
            "measure.tcp_info",
            POSITIVE,
            "Sample each Linux flow's `TCP_INFO` (window, RTT, retransmissions) this often",
        )
        .or_none("no samples")
        .when(When::LinuxFlow),
        key(
            "measure.fct_groups",
            Kind::Sizes,
            "Flow sizes at which the groups of completion times begin, the first one at 0",
        )
        .or(r#"["10kB", "100kB", "10MB"]"#),
        key("measure.capture", Kind::Flag, "Write a packet capture (pcapng)").or(false),
        key("measure.capture_side", Kind::Name(SIDES), "At which end of each flow packets are captured").or("sender"),
    ]
}

impl Key {
    /// The table that it stands in.
    pub(crate) fn table(&self) -> &'static Table {
        let path = self.path.rsplit_once('.').map_or("", |(table, _)| table);
        TABLES.iter().find(|table| table.path == path).expect("every key stands in a table of the registry")
    }
}
