//! The places of a hybrid fabric where packets wait or are sent from, in one numbering, which accounts, causes and victims
//! share.
//!
//! What a ToR sends packets on by (its VOQs, its ports to the hosts) is contiguous, and so are the packet switch's ports:
//! accounts have a row for these. All links that can be paused are contiguous too.

use crate::config::HybridConfig;
use crate::fabric::adapter;
use std::ops::Range;

/// The numbering.
#[derive(Clone, Copy)]
pub(super) struct Places {
    racks: usize,
    hosts_per_rack: usize,
    /// There is a packet switch; else uplinks end at the other ToR.
    switched: bool,
    /// Hosts' adapters pause the links to the hosts.
    adapters: bool,
}

/// A place, told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::fabric) enum Place {
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

impl Places {
    pub(super) fn new(config: &HybridConfig) -> Self {
        let HybridConfig { racks, hosts_per_rack, .. } = *config;
        let adapters = config.interface.adapter.receive.is_some();
        Places { racks, hosts_per_rack, switched: config.packet.switched, adapters }
    }

    /// Ports and VOQs of a ToR.
    fn of_tor(&self) -> usize {
        self.racks + self.hosts_per_rack
    }

    fn hosts(&self) -> usize {
        self.racks * self.hosts_per_rack
    }

    /// The first link that can be paused.
    fn first_link(&self) -> usize {
        self.racks * self.of_tor()
    }

    /// Links that can be paused with and without adapters: all but those to hosts.
    fn inner_links(&self) -> usize {
        2 * self.racks + self.hosts()
    }

    /// How many links can be paused.
    pub(super) fn links(&self) -> usize {
        self.inner_links() + if self.adapters { self.hosts() } else { 0 }
    }

    /// How many places there are.
    pub(super) fn count(&self) -> usize {
        self.first_link() + self.inner_links() + self.racks + self.hosts()
    }

    /// The number of a place.
    #[inline]
    pub(super) fn of(&self, place: Place) -> usize {
        let first = self.first_link();
        match place {
            Place::Voq(src, dst) => src * self.of_tor() + dst,
            Place::HostPort(host) => {
                let rack = host / self.hosts_per_rack;
                rack * self.of_tor() + self.racks + host % self.hosts_per_rack
            }
            Place::Downlink(rack) => first + rack,
            Place::Uplink(rack) => first + self.racks + rack,
            Place::Nic(host) => first + 2 * self.racks + host,
            Place::Circuit(rack) => first + self.inner_links() + rack,
            Place::Adapter(host) => first + self.inner_links() + self.racks + host,
        }
    }

    /// The place of a number.
    pub(super) fn place(&self, number: usize) -> Place {
        let (racks, hosts) = (self.racks, self.hosts());
        let Some(link) = number.checked_sub(self.first_link()) else {
            let (rack, port) = (number / self.of_tor(), number % self.of_tor());
            return match port.checked_sub(racks) {
                None => Place::Voq(rack, port),
                Some(host) => Place::HostPort(rack * self.hosts_per_rack + host),
            };
        };
        match link {
            link if link < racks => Place::Downlink(link),
            link if link < 2 * racks => Place::Uplink(link - racks),
            link if link < 2 * racks + hosts => Place::Nic(link - 2 * racks),
            link if link < 3 * racks + hosts => Place::Circuit(link - 2 * racks - hosts),
            link => Place::Adapter(link - 3 * racks - hosts),
        }
    }

    /// The number of a link among those that can be paused; the links to hosts are the last.
    pub(super) fn link(&self, place: Place) -> usize {
        match place {
            Place::HostPort(host) => self.inner_links() + host,
            other => self.of(other) - self.first_link(),
        }
    }

    /// The place that a pausable link begins at.
    pub(super) fn of_link(&self, link: usize) -> Place {
        match link.checked_sub(self.inner_links()) {
            Some(host) => Place::HostPort(host),
            None => self.place(self.first_link() + link),
        }
    }

    /// The transmitter of the other direction; none where nothing comes back.
    pub(super) fn back(&self, place: Place) -> Option<Place> {
        match place {
            Place::Nic(host) => Some(Place::HostPort(host)),
            Place::HostPort(host) => Some(Place::Nic(host)),
            Place::Uplink(rack) if self.switched => Some(Place::Downlink(rack)),
            Place::Uplink(rack) => Some(Place::Uplink(1 - rack)),
            Place::Downlink(rack) => Some(Place::Uplink(rack)),
            Place::Voq(..) | Place::Circuit(_) | Place::Adapter(_) => None,
        }
    }

    /// Where packets that come from a place may wait next: those of one switch.
    pub(super) fn egresses(&self, from: usize) -> Range<usize> {
        let tor = |rack: usize| rack * self.of_tor()..(rack + 1) * self.of_tor();
        match self.place(from) {
            Place::Voq(..) | Place::Adapter(_) => 0..0,
            Place::HostPort(host) => {
                let adapter = self.of(Place::Adapter(host));
                adapter..adapter + 1
            }
            Place::Nic(host) => tor(host / self.hosts_per_rack),
            Place::Uplink(rack) if !self.switched => tor(1 - rack),
            Place::Uplink(_) => self.first_link()..self.first_link() + self.racks,
            Place::Downlink(rack) | Place::Circuit(rack) => tor(rack),
        }
    }

    /// The name of the switch that packets from a place come to.
    pub(super) fn switch(&self, from: Place) -> String {
        match from {
            Place::Nic(host) => format!("tor{}", host / self.hosts_per_rack),
            Place::Uplink(_) if self.switched => "packet switch".into(),
            Place::Uplink(rack) => format!("tor{}", 1 - rack),
            Place::Downlink(rack) | Place::Circuit(rack) => format!("tor{rack}"),
            Place::Voq(src, _) => format!("tor{src}"),
            Place::HostPort(host) | Place::Adapter(host) => format!("host{host}"),
        }
    }

    /// The links into switches and adapters, in the order in which they are told.
    pub(super) fn inward(&self) -> impl Iterator<Item = Place> + '_ {
        let downlinks = if self.switched { 0..self.racks } else { 0..0 };
        let nics = (0..self.hosts()).map(Place::Nic);
        nics.chain((0..self.racks).map(Place::Uplink))
            .chain(downlinks.map(Place::Downlink))
            .chain((0..self.racks).map(Place::Circuit))
            .chain((0..if self.adapters { self.hosts() } else { 0 }).map(Place::HostPort))
    }
}

impl Place {
    /// As in other tables.
    pub(super) fn name(self) -> String {
        match self {
            Place::Voq(src, dst) => format!("voq.{src}.{dst}"),
            Place::HostPort(host) => format!("host{host}.port"),
            Place::Downlink(rack) => format!("downlink.{rack}"),
            Place::Uplink(rack) => format!("uplink.{rack}"),
            Place::Nic(host) => format!("host{host}.nic"),
            Place::Circuit(rack) => format!("circuit.to.{rack}"),
            Place::Adapter(host) => adapter::name(host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_places_are_one_to_one_and_switches_are_contiguous() {
        for (racks, hosts, switched, adapters) in
            [(2, 1, false, false), (2, 3, true, false), (5, 4, true, true), (2, 2, false, true)]
        {
            let places = Places { racks, hosts_per_rack: hosts, switched, adapters };
            for number in 0..places.count() {
                assert_eq!(places.of(places.place(number)), number);
            }
            let links: Vec<_> = (0..places.links()).map(|link| places.of_link(link)).collect();
            assert!(links.iter().enumerate().all(|(link, place)| places.link(*place) == link));
            assert_eq!(links.contains(&Place::HostPort(0)), adapters);
            let mut paused = places.inward().filter(|place| !matches!(place, Place::Circuit(_)));
            assert!(paused.all(|place| links.contains(&place)));
            for from in places.inward() {
                let switch = places.switch(from);
                let egresses: Vec<Place> = places.egresses(places.of(from)).map(|n| places.place(n)).collect();
                let own = |place: &Place| match place {
                    Place::Downlink(_) => "packet switch".into(),
                    Place::HostPort(host) => format!("tor{}", host / hosts),
                    other => places.switch(*other),
                };
                assert!(egresses.iter().all(|place| own(place) == switch), "{from:?} -> {egresses:?}");
                let back = places.back(from);
                assert_eq!(back.is_none(), matches!(from, Place::Circuit(_)));
                assert!(back.is_none_or(|back| places.back(back) == Some(from)));
            }
        }
    }
}
