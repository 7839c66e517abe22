//! Deadlock: paused transmitters that can never resume, because each waits for others of them.
//!
//! A paused class resumes when its account falls to XON. It never resumes when more than XON bytes of the account are
//! bound for egresses that are paused themselves and never resume. The search begins with all paused transmitters. It
//! removes those that could resume if the others stayed paused, until no more can be removed. The transmitters that are
//! left are paused for ever, and have been in deadlock since the last of their circle stopped.

use super::accounts::IngressAccounts;
use super::pause_log::PauseLog;
use firstlight_units::Time;

/// A circle of transmitters that wait for each other.
pub(super) struct Circle {
    pub(super) priority: usize,
    pub(super) transmitters: Vec<usize>,
    pub(super) since: Time,
    /// The number of transmitters that can never resume, including those that wait for the circle.
    pub(super) stopped: usize,
}

/// The deadlock of a class, if there is one.
///
/// `rests` says of each transmitter whether it is paused, has nothing in service, and no pause frame for it is under
/// way.
pub(super) fn find(accounts: &IngressAccounts, log: &PauseLog, rests: &[bool], priority: usize) -> Option<Circle> {
    let (mut dead, transmitters) = (rests.to_vec(), rests.len());
    let stuck = |dead: &[bool], from: usize| -> u64 {
        accounts.egresses(from, priority).filter(|(port, _)| dead[*port]).map(|(_, bytes)| bytes).sum()
    };
    loop {
        let free = |from: &usize| dead[*from] && stuck(&dead, *from) <= accounts.limits(*from).xon.get();
        let free: Vec<usize> = (0..transmitters).filter(free).collect();
        if free.is_empty() {
            break;
        }
        free.into_iter().for_each(|from| dead[from] = false);
    }
    let first = dead.iter().position(|dead| *dead)?;
    let next = |from: usize| {
        let all = accounts.egresses(from, priority).filter(|(port, _)| dead[*port]);
        all.max_by_key(|(_, bytes)| *bytes).expect("a dead transmitter waits for another one").0
    };
    let mut path = vec![first];
    let circle = loop {
        let at = next(path[path.len() - 1]);
        if let Some(begin) = path.iter().position(|met| *met == at) {
            break path.split_off(begin);
        }
        path.push(at);
    };
    let since = circle.iter().filter_map(|from| log.since(*from, priority)).max().expect("a circle has members");
    Some(Circle { priority, transmitters: circle, since, stopped: dead.iter().filter(|dead| **dead).count() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::lossless::graph::egresses;
    use crate::fabric::lossless::pause_log::PauseOrigin;
    use firstlight_net::pfc::PfcLimits;
    use firstlight_net::topology::{Cable, Graph, Topology};
    use firstlight_units::{Bytes, Rate, Span};

    /// Three switches in a ring, each with a host; ports 3 i + 0 to the host, and one each way round.
    fn ring() -> Topology {
        let (mut graph, cable) = (Graph::default(), Cable::new(Rate::from_gbps(10), Span::ZERO));
        let switches: Vec<_> = (0..3).map(|i| graph.switch(format!("s{i}"), "switch")).collect();
        for (i, switch) in switches.iter().enumerate() {
            let host = graph.host(format!("host{i}"));
            graph.link(host, *switch, cable);
        }
        (0..3).for_each(|i| graph.link(switches[i], switches[(i + 1) % 3], cable));
        graph.build().unwrap()
    }

    /// All three ports around the ring are paused and idle. Each account holds the given bytes for the next port, and
    /// the others for the host.
    fn stopped(onward: u16) -> Option<usize> {
        let topology = ring();
        let round: Vec<usize> = (0..3)
            .map(|i| {
                let next = topology.find(&format!("s{}", (i + 1) % 3)).unwrap();
                let from = topology.find(&format!("s{i}")).unwrap();
                (0..9).find(|port| topology.source_of(*port) == from && topology.target_of(*port) == next).unwrap()
            })
            .collect();
        let limits = PfcLimits { xon: Bytes::new(3000), xoff: Bytes::new(6000), ..PfcLimits::default() };
        let links = (0..topology.transmitters()).map(|from| (egresses(&topology, from), limits));
        let mut accounts = IngressAccounts::new(links, 1);
        let mut log = PauseLog::new(topology.transmitters(), 1, 10);
        let mut rests = vec![false; topology.transmitters()];
        for i in 0..3 {
            let (from, next) = (round[i], round[(i + 1) % 3]);
            let host = (0..9).find(|port| {
                topology.source_of(*port) == topology.source_of(next)
                    && matches!(topology.target_of(*port), firstlight_net::topology::Node::Host(_))
            });
            accounts.add(from, 0, next, onward);
            accounts.add(from, 0, host.unwrap(), 5000);
            log.set_origin(from, 0, PauseOrigin { egress: next, root: next });
            log.begin(from, 0, Time::ZERO, Time::ZERO);
            rests[from] = true;
        }
        find(&accounts, &log, &rests, 0).map(|circle| circle.stopped)
    }

    /// The bytes for the hosts leave. With XON bytes left for the next port, all ports can resume.
    #[test]
    fn a_circle_is_dead_with_more_than_xon_in_it() {
        assert_eq!((stopped(3000), stopped(3001)), (None, Some(3)));
    }
}
