//! The pause points of a hybrid fabric: where packets wait or are sent from, in one numbering, which accounts, origins
//! of pauses and victims share.
//!
//! The egresses of a ToR (its VOQs, its ports to the hosts) are contiguous, and so are the packet switch's ports:
//! accounts have a row for these.

use crate::config::HybridConfig;
use crate::fabric::adapter;
use firstlight_net::fabric::voq_name;
use std::ops::Range;

/// The numbering.
#[derive(Clone, Copy)]
pub(super) struct PausePoints {
    racks: usize,
    hosts_per_rack: usize,
    /// Whether there is a packet switch; otherwise uplinks end at the other ToR.
    switched: bool,
    /// Hosts' adapters pause the links to the hosts.
    adapters: bool,
}

/// A pause point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::fabric) enum PausePoint {
    /// The VOQ of a pair of racks.
    Voq(usize, usize),
    /// A ToR's port to a host.
    HostPort(usize),
    /// The packet switch's port to a rack.
    Downlink(usize),
    /// A ToR's port to the packet switch.
    Uplink(usize),
    /// A host's interface.
    Nic(usize),
    /// Whatever circuit leads to a rack.
    Circuit(usize),
    /// A host's adapter.
    Adapter(usize),
}

impl PausePoints {
    pub(super) fn new(config: &HybridConfig) -> Self {
        let (racks, hosts_per_rack) = (config.racks(), config.hosts_per_rack);
        let adapters = config.interface.adapter.receive.is_some();
        PausePoints { racks, hosts_per_rack, switched: config.packet.switched, adapters }
    }

    /// Ports and VOQs of a ToR.
    fn of_tor(&self) -> usize {
        self.racks + self.hosts_per_rack
    }

    fn hosts(&self) -> usize {
        self.racks * self.hosts_per_rack
    }

    /// The first point that is no egress of a ToR.
    fn first_link(&self) -> usize {
        self.racks * self.of_tor()
    }

    /// How many pause points there are.
    pub(super) fn count(&self) -> usize {
        self.first_link() + 3 * self.racks + 2 * self.hosts()
    }

    /// The number of a pause point.
    #[inline]
    pub(super) fn number(&self, point: PausePoint) -> usize {
        let first = self.first_link();
        match point {
            PausePoint::Voq(src, dst) => src * self.of_tor() + dst,
            PausePoint::HostPort(host) => {
                let rack = host / self.hosts_per_rack;
                rack * self.of_tor() + self.racks + host % self.hosts_per_rack
            }
            PausePoint::Downlink(rack) => first + rack,
            PausePoint::Uplink(rack) => first + self.racks + rack,
            PausePoint::Nic(host) => first + 2 * self.racks + host,
            PausePoint::Circuit(rack) => first + 2 * self.racks + self.hosts() + rack,
            PausePoint::Adapter(host) => first + 3 * self.racks + self.hosts() + host,
        }
    }

    /// The pause point of a number.
    pub(super) fn point(&self, number: usize) -> PausePoint {
        let (racks, hosts) = (self.racks, self.hosts());
        let Some(link) = number.checked_sub(self.first_link()) else {
            let (rack, port) = (number / self.of_tor(), number % self.of_tor());
            return match port.checked_sub(racks) {
                None => PausePoint::Voq(rack, port),
                Some(host) => PausePoint::HostPort(rack * self.hosts_per_rack + host),
            };
        };
        match link {
            link if link < racks => PausePoint::Downlink(link),
            link if link < 2 * racks => PausePoint::Uplink(link - racks),
            link if link < 2 * racks + hosts => PausePoint::Nic(link - 2 * racks),
            link if link < 3 * racks + hosts => PausePoint::Circuit(link - 2 * racks - hosts),
            link => PausePoint::Adapter(link - 3 * racks - hosts),
        }
    }

    /// The transmitter of the reverse direction of a link that can be paused.
    pub(super) fn reverse(&self, point: PausePoint) -> Option<PausePoint> {
        match point {
            PausePoint::Nic(host) => Some(PausePoint::HostPort(host)),
            PausePoint::HostPort(host) => Some(PausePoint::Nic(host)),
            PausePoint::Uplink(rack) if self.switched => Some(PausePoint::Downlink(rack)),
            PausePoint::Uplink(rack) => Some(PausePoint::Uplink(1 - rack)),
            PausePoint::Downlink(rack) => Some(PausePoint::Uplink(rack)),
            PausePoint::Voq(..) | PausePoint::Circuit(_) | PausePoint::Adapter(_) => None,
        }
    }

    /// Where packets that come over a link may wait next: egresses of one switch.
    pub(super) fn egresses(&self, from: usize) -> Range<usize> {
        let tor = |rack: usize| rack * self.of_tor()..(rack + 1) * self.of_tor();
        match self.point(from) {
            PausePoint::Voq(..) | PausePoint::Adapter(_) => 0..0,
            PausePoint::HostPort(host) => {
                let adapter = self.number(PausePoint::Adapter(host));
                adapter..adapter + 1
            }
            PausePoint::Nic(host) => tor(host / self.hosts_per_rack),
            PausePoint::Uplink(rack) if !self.switched => tor(1 - rack),
            PausePoint::Uplink(_) => self.first_link()..self.first_link() + self.racks,
            PausePoint::Downlink(rack) | PausePoint::Circuit(rack) => tor(rack),
        }
    }

    /// The name of the switch, or host, that a link leads to.
    pub(super) fn switch(&self, from: PausePoint) -> String {
        match from {
            PausePoint::Nic(host) => format!("tor{}", host / self.hosts_per_rack),
            PausePoint::Uplink(_) if self.switched => "packet switch".into(),
            PausePoint::Uplink(rack) => format!("tor{}", 1 - rack),
            PausePoint::Downlink(rack) | PausePoint::Circuit(rack) => format!("tor{rack}"),
            PausePoint::Voq(src, _) => format!("tor{src}"),
            PausePoint::HostPort(host) | PausePoint::Adapter(host) => format!("host{host}"),
        }
    }

    /// The links into switches and adapters, in the order in which they are reported.
    pub(super) fn inward(&self) -> impl Iterator<Item = PausePoint> + '_ {
        let downlinks = if self.switched { 0..self.racks } else { 0..0 };
        let nics = (0..self.hosts()).map(PausePoint::Nic);
        nics.chain((0..self.racks).map(PausePoint::Uplink))
            .chain(downlinks.map(PausePoint::Downlink))
            .chain((0..self.racks).map(PausePoint::Circuit))
            .chain((0..if self.adapters { self.hosts() } else { 0 }).map(PausePoint::HostPort))
    }
}

impl PausePoint {
    /// The point's name, as in other tables.
    pub(super) fn name(self) -> String {
        match self {
            PausePoint::Voq(src, dst) => voq_name(src, dst),
            PausePoint::HostPort(host) => format!("host{host}.port"),
            PausePoint::Downlink(rack) => format!("downlink.{rack}"),
            PausePoint::Uplink(rack) => format!("uplink.{rack}"),
            PausePoint::Nic(host) => format!("host{host}.nic"),
            PausePoint::Circuit(rack) => format!("circuit.to.{rack}"),
            PausePoint::Adapter(host) => adapter::name(host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_points_are_one_to_one_and_switches_are_contiguous() {
        for (racks, hosts, switched, adapters) in
            [(2, 1, false, false), (2, 3, true, false), (5, 4, true, true), (2, 2, false, true)]
        {
            let points = PausePoints { racks, hosts_per_rack: hosts, switched, adapters };
            for number in 0..points.count() {
                assert_eq!(points.number(points.point(number)), number);
            }
            assert_eq!(points.inward().any(|point| point == PausePoint::HostPort(0)), adapters);
            for from in points.inward() {
                let switch = points.switch(from);
                let egresses: Vec<PausePoint> = points.egresses(points.number(from)).map(|n| points.point(n)).collect();
                let own = |point: &PausePoint| match point {
                    PausePoint::Downlink(_) => "packet switch".into(),
                    PausePoint::HostPort(host) => format!("tor{}", host / hosts),
                    other => points.switch(*other),
                };
                assert!(egresses.iter().all(|point| own(point) == switch), "{from:?} -> {egresses:?}");
                let reverse = points.reverse(from);
                assert_eq!(reverse.is_none(), matches!(from, PausePoint::Circuit(_)));
                assert!(reverse.is_none_or(|reverse| points.reverse(reverse) == Some(from)));
            }
        }
    }
}
