//! The IPv4 address of a host in a capture.

use firstlight_net::HostId;

/// Hosts of one /24 network: .1 to .254.
const PER_NETWORK: usize = 254;

/// The address of a host: host h of rack r is `10.0.r.(h + 1)`. When the third byte is full the second one counts on. A
/// rack of more than 254 hosts has as many /24 networks as it needs. On a star all hosts are of one rack.
pub fn address(host: HostId, hosts_per_rack: usize) -> [u8; 4] {
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
    fn no_two_hosts_share_one() {
        for hosts_per_rack in [1, 16, 254, 255, 65_535] {
            let addresses: BTreeSet<_> = (0..65_535).map(|host| address(HostId(host), hosts_per_rack)).collect();
            assert_eq!(addresses.len(), 65_535, "{hosts_per_rack} hosts per rack");
        }
    }
}
