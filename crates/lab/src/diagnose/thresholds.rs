//! Warnings on thresholds that a queue never reaches, because it is full before.

use crate::spec::{Network, Spec};
use firstlight_net::{Band, Length, Limit, Marking};
use firstlight_sim::{SwitchConfig, VoqConfig};
use firstlight_units::Bytes;

/// One warning for each threshold that is never exceeded.
pub fn out_of_reach(spec: &Spec) -> Vec<String> {
    let mtu = u64::from(spec.tcp.mtu);
    match &spec.network {
        Network::Graph(graph) => switch(&graph.switch, spec.network.interface().qcn.map(|qcn| qcn.set_point), mtu),
        Network::Hybrid(hybrid) => voq(&hybrid.voq, mtu),
    }
}

fn voq(voq: &VoqConfig, mtu: u64) -> Vec<String> {
    let (small, large) = (voq.discipline.limit, voq.resize.as_ref());
    let own = match voq.discipline.marking {
        Marking::Threshold(mark) => never("voq.ecn_small", mark, small, mtu),
        Marking::Red(red) => never("voq.red.min", least(red.band), large.map_or(small, |resize| resize.limit), mtu),
        _ => None,
    };
    let enlarged = large.and_then(|resize| never("voq.ecn_large", resize.threshold?, resize.limit, mtu));
    own.into_iter().chain(enlarged).collect()
}

fn switch(switch: &SwitchConfig, set_point: Option<Bytes>, mtu: u64) -> Vec<String> {
    let queues = if switch.classes.is_empty() { std::slice::from_ref(&switch.discipline) } else { &switch.classes[..] };
    let unreached = |queue: &firstlight_net::Discipline| {
        let mark = match queue.marking {
            Marking::Threshold(mark) => never("switch.ecn", mark, queue.limit, mtu),
            Marking::Red(red) => never("switch.red.min", least(red.band), queue.limit, mtu),
            _ => None,
        };
        let qeq = set_point.and_then(|point| never("qcn.qeq", Length::Bytes(point), queue.limit, mtu));
        [qeq, mark]
    };
    queues.iter().flat_map(unreached).flatten().collect()
}

/// The average length below which RED marks nothing.
fn least(band: Band) -> Length {
    match band {
        Band::Packets { min, .. } => Length::Packets(min),
        Band::Bytes { min, .. } => Length::Bytes(min),
    }
}

/// The warning that a queue with this limit never exceeds the threshold; `None` where packets smaller than the MTU
/// could.
fn never(key: &str, threshold: Length, limit: Limit, mtu: u64) -> Option<String> {
    let (threshold, beyond, limit) = match (threshold, limit) {
        (Length::Packets(mark), Limit::Packets(limit)) => (mark.to_string(), mark >= limit, format!("{limit} packets")),
        (Length::Bytes(mark), Limit::Bytes(limit)) => (mark.to_string(), mark >= limit, limit.to_string()),
        (Length::Bytes(mark), Limit::Packets(limit)) => {
            // The limit does not count the packet in service.
            let most = (u64::from(limit) + 1) * mtu;
            (mark.to_string(), mark.get() >= most, format!("{limit} packets of {mtu} bytes"))
        }
        _ => return None,
    };
    beyond.then(|| format!("{key} = {threshold} is never exceeded: the queue holds {limit}"))
}
