//! The path of a flow, and how long packets take on it while the network is empty.
//!
//! Switches store and forward: a packet is sent on when its last bit has arrived. These times are what a flow's
//! completion is measured against ("slowdown against the ideal on an empty fabric").

use super::{PortId, Topology, Wire};
use crate::HostId;
use firstlight_units::{Bytes, Rate, Span};

/// Something that sends on a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Output {
    /// A host's interface.
    Nic(HostId),
    /// A switch's port.
    Port(PortId),
}

/// The outputs that a packet passes, with their wires.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Path {
    hops: Vec<(Output, Wire)>,
}

impl Path {
    pub(super) fn of(output: Output, wire: Wire) -> Self {
        Path { hops: vec![(output, wire)] }
    }

    pub(super) fn push(&mut self, output: Output, wire: Wire) {
        self.hops.push((output, wire));
    }

    /// The outputs, from the sender's interface on.
    pub fn outputs(&self) -> impl ExactSizeIterator<Item = Output> + '_ {
        self.hops.iter().map(|(output, _)| *output)
    }

    /// The wires in the same order.
    pub fn wires(&self) -> impl ExactSizeIterator<Item = Wire> + '_ {
        self.hops.iter().map(|(_, wire)| *wire)
    }

    /// How many links it has.
    pub fn links(&self) -> usize {
        self.hops.len()
    }

    /// The least rate on the way.
    pub fn bottleneck(&self) -> Rate {
        self.wires().map(|wire| wire.rate).min().expect("a path has a link")
    }

    /// The sum of the propagation delays.
    pub fn propagation(&self) -> Span {
        self.wires().map(|wire| wire.delay).sum()
    }

    /// How long a lone packet of `size` takes, from its first bit's leaving the sender's interface to its last bit's
    /// arrival: serialization on each link, and propagation.
    pub fn latency(&self, size: Bytes) -> Span {
        self.propagation() + self.wires().map(|wire| wire.rate.tx_time(size)).sum()
    }

    /// The time of a train that the sender's interface sends without a pause, from its first packet's first bit to its
    /// last packet's last bit: `full` packets of size `size`, then one of size `last` unless that is zero.
    ///
    /// A packet waits at each link for the packet before it. The time is therefore the longest chain of serializations
    /// in which each step goes to the same packet's next link or to the same link's next packet. With equal packets
    /// this chain has each link once, and the slowest link for all other packets. The small last packet joins the chain
    /// at the link where this makes the chain longest.
    pub fn train(&self, full: u64, size: Bytes, last: Bytes) -> Span {
        let times = |size: Bytes| self.wires().map(move |wire| wire.rate.tx_time(size));
        let mut chain = Span::ZERO;
        if full > 0 {
            let slowest = times(size).max().expect("a path has a link");
            chain = times(size).sum::<Span>() + slowest * (full - 1);
        }
        if last > Bytes::new(0) {
            chain = chain.max(self.longest_with_last(full, size, last));
        }
        self.propagation() + chain
    }

    /// The longest chain that ends with the small packet.
    fn longest_with_last(&self, full: u64, size: Bytes, last: Bytes) -> Span {
        let (mut before, mut slowest, mut longest) = (Span::ZERO, Span::ZERO, Span::ZERO);
        let mut left: Span = self.wires().map(|wire| wire.rate.tx_time(last)).sum();
        for wire in self.wires() {
            let (whole, small) = (wire.rate.tx_time(size), wire.rate.tx_time(last));
            (before, slowest) = (before + whole, slowest.max(whole));
            let full_packets = if full > 0 { before + slowest * (full - 1) } else { Span::ZERO };
            longest = longest.max(full_packets + left);
            left = left - small;
        }
        longest
    }

    /// The path's outputs by name.
    pub fn names(&self, topology: &Topology) -> Vec<String> {
        let name = |output| match output {
            Output::Nic(host) => topology.nic_name(host),
            Output::Port(port) => topology.port_name(port),
        };
        self.outputs().map(name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(wires: &[(u64, u64)]) -> Path {
        let wire = |(mbps, ns): (u64, u64)| Wire { rate: Rate::from_bps(mbps * 1_000_000), delay: Span::from_ns(ns) };
        Path { hops: wires.iter().map(|w| (Output::Nic(HostId(0)), wire(*w))).collect() }
    }

    #[test]
    fn the_ends_of_two_links_by_hand() {
        let path = path(&[(10_000, 1000), (1_000, 500)]);
        // 1500 bytes: 1.2 us at 10 Gb/s, 12 us at 1 Gb/s.
        assert_eq!(path.latency(Bytes::new(1500)), Span::from_ns(1200 + 1000 + 12_000 + 500));
        assert_eq!(path.bottleneck(), Rate::from_gbps(1));
        assert_eq!(path.train(3, Bytes::new(1500), Bytes::new(0)), Span::from_ns(1200 + 1500 + 36_000));
        assert_eq!(path.train(3, Bytes::new(1500), Bytes::new(150)), Span::from_ns(1200 + 1500 + 36_000 + 1_200));
        assert_eq!(path.train(0, Bytes::new(1500), Bytes::new(150)), path.latency(Bytes::new(150)));
    }

    proptest! {
        #[test]
        fn a_train_agrees_with_its_packets_one_by_one(
            wires in prop::collection::vec((1u64..2000, 0u64..5000), 1..7),
            full in 0u64..6, size in 100u64..9000, last in 0u64..9000,
        ) {
            let (path, last) = (path(&wires), last.min(size));
            prop_assume!(full > 0 || last > 0);
            let mut free = vec![Span::ZERO; wires.len()];
            let mut arrived = Span::ZERO;
            for size in (0..full).map(|_| size).chain((last > 0).then_some(last)) {
                arrived = Span::ZERO;
                for (free, wire) in free.iter_mut().zip(path.wires()) {
                    *free = arrived.max(*free) + wire.rate.tx_time(Bytes::new(size));
                    arrived = *free + wire.delay;
                }
            }
            prop_assert_eq!(path.train(full, Bytes::new(size), Bytes::new(last)), arrived);
        }
    }
}
