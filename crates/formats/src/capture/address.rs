//! The IPv4 addresses of hosts.

use firstlight_net::HostId;
use firstlight_net::topology::FurtherLink;

/// Hosts of one /24 network: .1 to .254.
const PER_NETWORK: usize = 254;

/// The bits that addresses of further links with the same number have in common: they are a network of their own.
pub const LINK_PREFIX: u8 = 15;

/// The addresses of a network's hosts, and of their further links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// How many hosts a rack has.
    pub hosts_per_rack: usize,
    /// How many hosts there are.
    pub hosts: usize,
    /// Further links, which are numbered after the hosts.
    pub further: Vec<FurtherLink>,
}

impl Addresses {
    /// The address of a host or of a further link: that of link n of host 10.0.c.d is `10.(2n).c.d`.
    pub fn of(&self, host: HostId) -> [u8; 4] {
        let further = host.index().checked_sub(self.hosts).and_then(|further| self.further.get(further));
        let Some(&FurtherLink { of, number }) = further else { return address(host, self.hosts_per_rack) };
        let [a, b, c, d] = address(of, self.hosts_per_rack);
        [a, b + 2 * number, c, d]
    }
}

/// The address of a host: host h of rack r is `10.0.r.(h + 1)`. When the third byte is full the second one counts on. A
/// rack of more than 254 hosts has as many /24 networks as it needs. On a star all hosts are of one rack.
fn address(host: HostId, hosts_per_rack: usize) -> [u8; 4] {
    let (rack, within) = (host.index() / hosts_per_rack, host.index() % hosts_per_rack);
    let network = rack * hosts_per_rack.div_ceil(PER_NETWORK) + within / PER_NETWORK;
    [10, (network >> 8) as u8, network as u8, (within % PER_NETWORK) as u8 + 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn addresses_are_those_documented() {
        assert_eq!(address(HostId(0), 16), [10, 0, 0, 1]);
        assert_eq!(address(HostId(16 * 24 + 15), 16), [10, 0, 24, 16]);
        assert_eq!(address(HostId(300), 1), [10, 1, 44, 1]);
        assert_eq!(address(HostId(254), 1000), [10, 0, 1, 1]);
    }

    #[test]
    fn further_links_have_networks_of_their_own() {
        let link = |of, number| FurtherLink { of: HostId(of), number };
        let further = vec![link(0, 1), link(299, 1), link(299, 63)];
        let addresses = Addresses { hosts_per_rack: 300, hosts: 300, further };
        let all = [0, 299, 300, 301, 302].map(|host| addresses.of(HostId(host)));
        assert_eq!(all, [[10, 0, 0, 1], [10, 0, 1, 46], [10, 2, 0, 1], [10, 2, 1, 46], [10, 126, 1, 46]]);
        // All hosts of a graph are of one rack, whose addresses differ in 17 bits.
        assert_eq!(address(HostId(65_534), 65_535)[1], 1);
    }

    #[test]
    fn no_two_hosts_share_one() {
        for hosts_per_rack in [1, 16, 254, 255, 65_535] {
            let addresses: BTreeSet<_> = (0..65_535).map(|host| address(HostId(host), hosts_per_rack)).collect();
            assert_eq!(addresses.len(), 65_535, "{hosts_per_rack} hosts per rack");
        }
    }
}
