//! Warnings on thresholds that a queue never reaches, because it is full before.

use firstlight_net::{Discipline, Length};
use firstlight_sim::{SwitchConfig, VoqConfig};
use firstlight_spec::{Network, Spec};
use firstlight_units::Bytes;

/// One warning for each threshold that is never exceeded.
pub fn out_of_reach(spec: &Spec) -> Vec<String> {
    let mtu = u64::from(spec.tables.tcp.tcp.mtu);
    match &spec.network {
        Network::Graph(graph) => {
            switch(&graph.switch, spec.network.interface().tables.qcn.map(|qcn| qcn.set_point), mtu)
        }
        Network::Hybrid(hybrid) => voq(&hybrid.voq, mtu),
    }
}

fn voq(voq: &VoqConfig, mtu: u64) -> Vec<String> {
    let (discipline, resize) = (&voq.discipline, voq.resize.as_ref());
    let largest = resize.map_or(discipline.queue, |resize| resize.limit);
    let small = never("voq.ecn_small", discipline.ecn, discipline.queue, mtu);
    let large = never("voq.ecn_large", resize.and_then(|resize| resize.threshold), largest, mtu);
    let tables = discipline.thresholds();
    let tables = tables.filter_map(|(key, mark)| never(&format!("voq.{key}"), Some(mark), largest, mtu));
    small.into_iter().chain(large).chain(tables).collect()
}

fn switch(switch: &SwitchConfig, set_point: Option<Bytes>, mtu: u64) -> Vec<String> {
    let unreached = |queue: &Discipline| {
        let limit = queue.queue;
        let qeq = never("qcn.qeq", set_point.map(Length::Bytes), limit, mtu);
        let mark = never("switch.ecn", queue.ecn, limit, mtu);
        let tables = queue.thresholds();
        let tables = tables.filter_map(move |(key, mark)| never(&format!("switch.{key}"), Some(mark), limit, mtu));
        qeq.into_iter().chain(mark).chain(tables)
    };
    switch.disciplines().flat_map(unreached).collect()
}

/// The warning that a queue with this limit never exceeds the threshold; `None` where packets smaller than the MTU
/// could.
fn never(key: &str, threshold: Option<Length>, limit: Option<Length>, mtu: u64) -> Option<String> {
    let (threshold, beyond, limit) = match (threshold?, limit?) {
        (Length::Packets(mark), Length::Packets(limit)) => {
            (mark.to_string(), mark >= limit, format!("{limit} packets"))
        }
        (Length::Bytes(mark), Length::Bytes(limit)) => (mark.to_string(), mark >= limit, limit.to_string()),
        (Length::Bytes(mark), Length::Packets(limit)) => {
            // The limit does not count the packet in service.
            let most = (u64::from(limit) + 1) * mtu;
            (mark.to_string(), mark.get() >= most, format!("{limit} packets of {mtu} bytes"))
        }
        _ => return None,
    };
    beyond.then(|| format!("{key} = {threshold} is never exceeded: the queue holds {limit}"))
}
