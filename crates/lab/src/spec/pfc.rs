//! Lossless Ethernet: what `[pfc]` says, and whether its buffers hold what can come.

use super::error::{Problem, SpecError};
use super::keys::{Key, Kind};
use super::red;
use super::registry::{AMOUNT, MOST_HOSTS, SPAN, key};
use super::values::Values;
use firstlight_net::pfc::{PfcConfig, PfcLimits};
use firstlight_net::topology::{Node, Topology, Wire};
use firstlight_net::{Drops, Limit, Marking};
use firstlight_sim::{HostLinks, HybridConfig, SwitchConfig};
use firstlight_units::Bytes;

const VOQ_RED: &str = "voq.red";
/// What is paused.
const KINDS: &[&str] = &["pfc", "pause", "off"];

pub(super) fn keys() -> Vec<Key> {
    vec![
        key(
            "pfc.kind",
            Kind::Name(KINDS),
            "`pfc`: each class by itself (IEEE 802.1Qbb). `pause`: all classes of a link together (802.3x). `off`: as without \
             the table",
        )
        .or("pfc"),
        key("pfc.classes", Kind::Classes, "The lossless classes; not with `pause`, which stops all").or_none("all"),
        key(
            "pfc.xoff",
            Kind::Size { least: 0, most: 1 << 60 },
            "When a switch holds more than this of what came over a link, in a class, the link's sender is paused",
        )
        .or_none("see `pfc.buffer`; without that, `pfc.xon` and two packets"),
        key("pfc.xon", Kind::Size { least: 0, most: 1 << 60 }, "When it holds no more than this, the sender goes on")
            .or_none("two packets below `pfc.xoff`; without that and `pfc.buffer`, the link's headroom"),
        key("pfc.buffer", AMOUNT, "How much a switch can hold of what came over a link, in a class; more is lost")
            .or_none("`pfc.xoff` and the link's headroom: what can come once `pfc.xoff` is exceeded"),
        key("pfc.response", SPAN, "From a pause frame's arrival until the sender stops, but for the frame in service")
            .or_none("the longest that 802.3 allows: 60 quanta, 3.072us, at 10 Gb/s"),
        key("pfc.allow_loss", Kind::Flag, "Run though a buffer, or another limit of a lossless class, may lose packets")
            .or(false),
        key(
            "pfc.events",
            Kind::Count { least: 0, most: 10_000_000, of: "" },
            "How many beginnings and ends of pauses are told one by one",
        )
        .or(10_000),
    ]
}

/// Whether links can be paused.
pub(super) fn is_on(values: &Values) -> bool {
    values.tables.contains_key("pfc") && values.text("pfc.kind") != "off"
}

/// What the keys say, if links can be paused.
fn config(values: &Values) -> Option<PfcConfig> {
    if !is_on(values) {
        return None;
    }
    let whole_link = values.text("pfc.kind") == "pause";
    Some(PfcConfig {
        whole_link,
        classes: lossless(values).unwrap_or(u8::MAX),
        xoff: values.size_opt("pfc.xoff"),
        xon: values.size_opt("pfc.xon"),
        buffer: values.size_opt("pfc.buffer"),
        response: values.span_opt("pfc.response"),
        mtu: largest_packet(values),
        most_events: values.integer("pfc.events") as usize,
    })
}

/// The lossless classes, where these are given, a bit each.
fn lossless(values: &Values) -> Option<u8> {
    values.classes_opt("pfc.classes").filter(|_| values.text("pfc.kind") == "pfc")
}

/// The switches of a packet fabric with what holds on their links, if these can be paused.
pub(super) fn read(values: &Values, topology: &Topology, mut switch: SwitchConfig) -> Result<SwitchConfig, SpecError> {
    let Some(config) = config(values) else { return Ok(switch) };
    let links = Links {
        limits: links(topology, &config).collect(),
        name: &|transmitter| topology.transmitter_name(transmitter),
    };
    let classes = all_paused(values, &config).or_else(|| absent_class(values, &switch, lossless(values)));
    check(values, &links, classes, other_limits(values, &switch, &config))?;
    only_mark(values, &mut switch, &config);
    Ok(SwitchConfig { pfc: Some(config), ..switch })
}

/// What holds on the links of a hybrid fabric: those of hosts, and those of the packet network.
pub(super) fn read_hybrid(values: &Values, mut hybrid: HybridConfig) -> Result<HybridConfig, SpecError> {
    let Some(config) = config(values) else { return Ok(hybrid) };
    let HostLinks { rate, receive_rate, delay } = hybrid.links;
    let (there, back) = (Wire { rate, delay }, Wire { rate: receive_rate, delay });
    let packet = Wire { rate: hybrid.packet.rate, delay: hybrid.packet.delay };
    let of_hosts = (0..hybrid.racks * hybrid.hosts_per_rack).map(|host| (host, config.limits(there, back)));
    let of_uplinks = (0..hybrid.racks).map(|rack| (MOST_HOSTS as usize + rack, config.limits(packet, packet)));
    let links = Links {
        limits: of_hosts.chain(of_uplinks).collect(),
        name: &|link| match link.checked_sub(MOST_HOSTS as usize) {
            None => format!("host{link}.nic"),
            Some(rack) => format!("uplink.{rack}"),
        },
    };
    let highest = lossless(values).and_then(u8::checked_ilog2).filter(|highest| *highest > 0);
    let text = |highest| format!("there is no class {highest}: the packets of a hybrid fabric are all of class 0");
    let absent = highest.map(|highest| values.problem("pfc.classes", text(highest)));
    let absent = all_paused(values, &config).or(absent);
    check(values, &links, absent, voq_limits(values, &config))?;
    if let Marking::Red(red) = &mut hybrid.voq.discipline.marking
        && config.has(0)
        && !red::is_told_to_drop(values, VOQ_RED)
    {
        red.drops = Drops::Nothing;
    }
    Ok(HybridConfig { pfc: Some(config), ..hybrid })
}

/// The links into switches that have buffers.
struct Links<'a> {
    limits: Vec<(usize, PfcLimits)>,
    name: &'a dyn Fn(usize) -> String,
}

/// What is wrong, or loses packets that must not be lost.
fn check(
    values: &Values,
    links: &Links<'_>,
    absent_class: Option<Problem>,
    other_limits: Option<Problem>,
) -> Result<(), SpecError> {
    let mut problems = vec![];
    problems.extend(absent_class);
    problems.extend(upside_down(values, links));
    if !values.flag("pfc.allow_loss") {
        problems.extend(other_limits);
        problems.extend(too_small(values, links));
    }
    if problems.is_empty() { Ok(()) } else { Err(SpecError { problems }) }
}

/// RED of lossless classes drops nothing, unless it is told to.
fn only_mark(values: &Values, switch: &mut SwitchConfig, config: &PfcConfig) {
    let told: Vec<bool> = (0..switch.queues().len()).map(|class| drops_beyond(values, switch, class)).collect();
    let queues =
        if switch.classes.is_empty() { std::slice::from_mut(&mut switch.discipline) } else { &mut switch.classes };
    for (_, queue) in queues.iter_mut().enumerate().filter(|(class, _)| config.has(*class) && !told[*class]) {
        if let Marking::Red(red) = &mut queue.marking {
            red.drops = Drops::Nothing;
        }
    }
}

/// The table of a queue's keys.
fn table(switch: &SwitchConfig, class: usize) -> String {
    if switch.classes.is_empty() { "switch".into() } else { format!("switch.classes.{class}") }
}

/// Whether a queue's RED is told to drop.
fn drops_beyond(values: &Values, switch: &SwitchConfig, class: usize) -> bool {
    red::is_told_to_drop(values, &format!("{}.red", table(switch, class)))
}

/// The largest packet of any host.
pub(super) fn largest_packet(values: &Values) -> Bytes {
    let lists = [("linux.hosts", "mtu"), ("workload", "packet")];
    let all = lists.iter().flat_map(|(list, leaf)| (0..values.count(list)).map(move |n| format!("{list}.{n}.{leaf}")));
    let others = all.filter(|path| values.has(path)).map(|path| values.size(&path));
    others.chain([values.size("hosts.mtu")]).max().expect("one is there")
}

/// A class that ports do not tell apart.
fn absent_class(values: &Values, switch: &SwitchConfig, classes: Option<u8>) -> Option<Problem> {
    let (highest, last) = (classes?.checked_ilog2()? as usize, switch.queues().len() - 1);
    let text = || format!("there is no class {highest}: the last is {last}; add [[switch.classes]]");
    (highest > last).then(|| values.problem("pfc.classes", text()))
}

/// Each link into a switch: its name, what holds there.
fn links<'a>(topology: &'a Topology, config: &'a PfcConfig) -> impl Iterator<Item = (usize, PfcLimits)> + 'a {
    let backs = topology.reverses();
    let inward = (0..topology.transmitters()).filter(|from| matches!(topology.target_of(*from), Node::Switch(_)));
    inward.map(move |from| (from, config.limits(topology.wire_of(from), topology.wire_of(backs[from]))))
}

/// Classes that are named where a pause stops all of them.
fn all_paused(values: &Values, config: &PfcConfig) -> Option<Problem> {
    const TEXT: &str = "has no effect: pfc.kind = \"pause\" stops all classes of a link; take it out, or use \"pfc\"";
    (config.whole_link && values.has("pfc.classes")).then(|| values.problem("pfc.classes", TEXT))
}

fn upside_down(values: &Values, links: &Links<'_>) -> Option<Problem> {
    let (from, limits) = links.limits.iter().find(|(_, limits)| limits.xon > limits.xoff)?;
    let PfcLimits { xon, xoff, .. } = limits;
    let text = format!("{xon} is above xoff, {xoff} on the link {}: use at most that", (links.name)(*from));
    Some(values.problem("pfc.xon", text))
}

/// A limit that drops packets of a lossless class, besides its buffer.
fn other_limits(values: &Values, switch: &SwitchConfig, config: &PfcConfig) -> Option<Problem> {
    const RIGHT: &str = "take it out, name other pfc.classes, or say pfc.allow_loss = true";
    if switch.buffer.is_some() {
        let text = format!("the shared buffer drops packets of lossless classes: {RIGHT}");
        return Some(values.problem("switch.buffer", text));
    }
    let classes = || (0..switch.queues().len()).filter(|class| config.has(*class));
    if let Some(class) = classes().find(|class| switch.queues()[*class].limit != Limit::None) {
        let text = format!("a queue's limit drops packets of a lossless class: {RIGHT}");
        return Some(values.problem(&format!("{}.queue", table(switch, class)), text));
    }
    let class = classes().find(|class| drops_beyond(values, switch, *class))?;
    let text = format!("RED drops packets of a lossless class; without this key it only marks there: {RIGHT}");
    Some(values.problem(&format!("{}.red.drop_beyond", table(switch, class)), text))
}

/// What drops packets at a VOQ.
fn voq_limits(values: &Values, config: &PfcConfig) -> Option<Problem> {
    const CAPACITY: &str = "a VOQ's capacity drops packets of a lossless class: take it out, so that VOQs take what hosts' accounts \
                            let in, or say pfc.allow_loss = true";
    const RED: &str = "RED drops packets of a lossless class; without this key it only marks there: take it out, or say \
                       pfc.allow_loss = true";
    if !config.has(0) {
        return None;
    }
    if values.has("voq.small") {
        return Some(values.problem("voq.small", CAPACITY));
    }
    red::is_told_to_drop(values, VOQ_RED).then(|| values.problem(&format!("{VOQ_RED}.drop_beyond"), RED))
}

/// The link whose buffer lacks most.
fn too_small(values: &Values, links: &Links<'_>) -> Option<Problem> {
    let lacking: Vec<_> = links.limits.iter().filter(|(_, limits)| limits.missing().get() > 0).collect();
    let (from, limits) = lacking.iter().max_by_key(|(from, limits)| (limits.missing(), std::cmp::Reverse(*from)))?;
    let PfcLimits { xoff, buffer, headroom, response, .. } = limits;
    let others = if lacking.len() > 1 { format!(" (and {} links more)", lacking.len() - 1) } else { String::new() };
    let text = format!(
        "on the link {}{others} {} are missing: {buffer} cannot hold xoff, {xoff}, and the headroom of {headroom} that can come \
         then (three packets, a pause frame, the cable both ways and a response of {}us): use a larger buffer or a smaller \
         xoff, or say pfc.allow_loss = true",
        (links.name)(*from),
        limits.missing(),
        response.as_us_f64(),
    );
    Some(values.problem(if values.has("pfc.buffer") { "pfc.buffer" } else { "pfc.xoff" }, text))
}
