//! The kernel's routing protocol (rtnetlink(7)): a namespace's devices, addresses and routes.
//!
//! The command `ip` would take a process for each namespace, which takes longer than all other set-up together.

use firstlight_linux::Metric;
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

// Kinds of messages.
const ERROR: u16 = 2;
const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;
const NEW_ROUTE: u16 = 24;
const NEW_QUEUE: u16 = 36;
// Flags of messages.
const REQUEST: u16 = 0x1;
const ACK: u16 = 0x4;
const REPLACE: u16 = 0x100;
const CREATE: u16 = 0x400;
// Attributes of a link, an address and a route.
const LINK_NAME: u16 = 3;
const LINK_MTU: u16 = 4;
const LINK_NAMESPACE: u16 = 28;
const LINK_GSO_MAX_SEGS: u16 = 40;
const ADDRESS: u16 = 1;
const ADDRESS_LOCAL: u16 = 2;
const ROUTE_TO: u16 = 1;
const ROUTE_DEVICE: u16 = 4;
const ROUTE_SOURCE: u16 = 7;
const ROUTE_METRICS: u16 = 8;
// Attributes of a queueing discipline, and of a token bucket filter.
const QUEUE_KIND: u16 = 1;
const QUEUE_OPTIONS: u16 = 2;
const BUCKET: u16 = 1;
const BUCKET_RATE: u16 = 4;
const BUCKET_BURST: u16 = 6;
/// The place of a device's own discipline.
const ROOT: u32 = u32::MAX;
/// Microseconds by which the kernel's timers may be late before a filter loses some of its rate.
const LATENESS_US: u64 = 50;
/// The kernel counts packets as they are.
const ETHERNET_LAYER: u8 = 1;

/// The priority of the route that an address of IPv6 makes.
const ROUTE_PRIORITY: u16 = 6;
const IPV6_PRIORITY: u32 = 256;

const INET: u8 = libc::AF_INET as u8;
const INET6: u8 = libc::AF_INET6 as u8;
const UP: u32 = libc::IFF_UP as u32;
const HEADER: usize = 16;

/// The bits of an IPv6 address before those of IPv4.
const BEFORE_IPV4: u8 = 96;

/// A socket to the kernel for the namespace in which it was opened.
pub struct Netlink {
    socket: OwnedFd,
}

impl Netlink {
    /// Opens a socket for the current namespace.
    pub fn open() -> Result<Self, Errno> {
        let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)?;
        Ok(Netlink { socket })
    }

    /// Moves a device to another namespace, under a new name.
    pub fn move_device(&self, index: u32, namespace: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
        let descriptor = namespace.as_raw_fd() as u32;
        let message = NetlinkMessage::new(NEW_LINK, 0)
            .link(index, 0)
            .attribute(LINK_NAMESPACE, &descriptor.to_ne_bytes())
            .attribute(LINK_NAME, &[name.as_bytes(), &[0]].concat());
        self.request(message)
    }

    /// Switches a device on, with this MTU if one is given.
    pub fn switch_on(&self, index: u32, mtu: Option<u16>) -> Result<(), Errno> {
        let message = NetlinkMessage::new(NEW_LINK, 0).link(index, UP);
        self.request(match mtu {
            Some(mtu) => message.attribute(LINK_MTU, &u32::from(mtu).to_ne_bytes()),
            None => message,
        })
    }

    /// Limits the segments that the stack hands to a device in one piece.
    pub fn limit_segments(&self, index: u32, most: u32) -> Result<(), Errno> {
        self.request(NetlinkMessage::new(NEW_LINK, 0).link(index, 0).attribute(LINK_GSO_MAX_SEGS, &most.to_ne_bytes()))
    }

    /// Gives a device its address in the hosts' network, in which IPv4 addresses have this number of bits in common.
    /// The kernel adds the route to the other hosts.
    pub fn add_address(&self, index: u32, address: IpAddr, bits: u8) -> Result<(), Errno> {
        let HostNetwork { family, prefix, own, .. } = HostNetwork::of(address, bits);
        // Family, prefix, flags, scope, index.
        let body = [&[family, prefix, 0, 0][..], &index.to_ne_bytes()].concat();
        let message = NetlinkMessage::new(NEW_ADDRESS, CREATE).body(&body);
        self.request(message.attribute(ADDRESS_LOCAL, &own).attribute(ADDRESS, &own))
    }

    /// Sets attributes of the route to the other hosts.
    pub fn set_metrics(&self, index: u32, address: IpAddr, bits: u8, metrics: &[Metric]) -> Result<(), Errno> {
        let HostNetwork { family, prefix, scope, own, all } = HostNetwork::of(address, bits);
        // Family, prefixes, service, table, protocol, scope, type, flags: those of the route that the address made.
        let body = [family, prefix, 0, 0, libc::RT_TABLE_MAIN, libc::RTPROT_KERNEL, scope, libc::RTN_UNICAST];
        let mut nested = NetlinkMessage::default();
        for metric in metrics.iter().chain(&Metric::lock(metrics)) {
            nested = nested.attribute(metric.number, &metric.value);
        }
        let message = NetlinkMessage::new(NEW_ROUTE, CREATE | REPLACE)
            .body(&[&body[..], &0u32.to_ne_bytes()].concat())
            .attribute(ROUTE_TO, &all)
            .attribute(ROUTE_DEVICE, &index.to_ne_bytes())
            .attribute(ROUTE_METRICS, &nested.bytes);
        self.request(match family {
            INET6 => message.attribute(ROUTE_PRIORITY, &IPV6_PRIORITY.to_ne_bytes()),
            _ => message.attribute(ROUTE_SOURCE, &own),
        })
    }

    /// Limits a device to `rate` bytes a second by a token bucket filter (tc-tbf(8)). Up to `packets` packets of `mtu`
    /// bytes wait. The bucket holds one of them and what passes in [`LATENESS_US`]: a smaller one would lose tokens
    /// while a timer is late.
    pub fn shape(&self, index: u32, rate: u64, mtu: u16, packets: u32) -> Result<(), Errno> {
        let narrow = u32::try_from(rate).unwrap_or(u32::MAX);
        // Two rates of: cell's size, layer, overhead, alignment, smallest packet, rate; limit, bucket, peak's bucket.
        let rates = [&[0, ETHERNET_LAYER, 0, 0, 0, 0, 0, 0][..], &narrow.to_ne_bytes(), &[0; 12]].concat();
        let limit = u32::from(mtu).saturating_mul(packets).to_ne_bytes();
        let options = NetlinkMessage::default()
            .attribute(BUCKET, &[&rates[..], &limit, &[0; 8]].concat())
            .attribute(BUCKET_RATE, &rate.to_ne_bytes())
            .attribute(BUCKET_BURST, &bucket(rate, mtu).to_ne_bytes());
        // Family, index, handle, parent, info.
        let body = [&[0; 4][..], &index.to_ne_bytes(), &[0; 4], &ROOT.to_ne_bytes(), &[0; 4]].concat();
        let message = NetlinkMessage::new(NEW_QUEUE, CREATE | REPLACE).body(&body);
        self.request(message.attribute(QUEUE_KIND, b"tbf\0").attribute(QUEUE_OPTIONS, &options.bytes))
    }

    /// Sends a request and waits for the kernel's answer.
    fn request(&self, message: NetlinkMessage) -> Result<(), Errno> {
        sendto(self.socket.as_raw_fd(), &message.finish(), &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
        let mut answer = [0u8; 4096];
        let length = recv(self.socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
        match &answer[..length] {
            [_, _, _, _, low, high, ..] if length >= HEADER + 4 && u16::from_ne_bytes([*low, *high]) == ERROR => {
                let code = i32::from_ne_bytes(answer[HEADER..HEADER + 4].try_into().expect("four bytes"));
                if code == 0 { Ok(()) } else { Err(Errno::from_raw(-code)) }
            }
            _ => Err(Errno::EBADMSG),
        }
    }
}

/// Bytes in the bucket of a filter.
fn bucket(rate: u64, mtu: u16) -> u32 {
    let late = u128::from(rate) * u128::from(LATENESS_US) / 1_000_000;
    u32::try_from(u128::from(mtu) + late).unwrap_or(u32::MAX)
}

/// The hosts' network as one of its addresses says it.
struct HostNetwork {
    family: u8,
    prefix: u8,
    /// The scope of the route to the other hosts.
    scope: u8,
    own: Vec<u8>,
    /// The network's own address.
    all: Vec<u8>,
}

impl HostNetwork {
    fn of(address: IpAddr, bits: u8) -> Self {
        let (family, prefix, scope, own) = match address {
            IpAddr::V4(address) => (INET, bits, libc::RT_SCOPE_LINK, address.octets().to_vec()),
            IpAddr::V6(address) => (INET6, BEFORE_IPV4 + bits, libc::RT_SCOPE_UNIVERSE, address.octets().to_vec()),
        };
        let mut all = own.clone();
        let (whole, rest) = (usize::from(prefix / 8), prefix % 8);
        all[whole] &= !(0xff >> rest);
        all[whole + 1..].fill(0);
        HostNetwork { family, prefix, scope, own, all }
    }
}

/// A request under construction.
#[derive(Default)]
struct NetlinkMessage {
    bytes: Vec<u8>,
}

impl NetlinkMessage {
    fn new(kind: u16, flags: u16) -> Self {
        let flags = REQUEST | ACK | flags;
        // Length, which `finish` sets; kind; flags; sequence; port.
        NetlinkMessage { bytes: [&[0; 4][..], &kind.to_ne_bytes(), &flags.to_ne_bytes(), &[0; 8]].concat() }
    }

    fn body(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Adds the body of a link request: family and type (any), index, flags, and which of them change.
    fn link(self, index: u32, flags: u32) -> Self {
        self.body(&[0; 4]).body(&index.to_ne_bytes()).body(&flags.to_ne_bytes()).body(&flags.to_ne_bytes())
    }

    fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        self.bytes.extend_from_slice(&(4 + value.len() as u16).to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(value);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    fn finish(mut self) -> Vec<u8> {
        let length = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::net::if_::if_nametoindex;
    use nix::sched::{CloneFlags, setns, unshare};
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::process::Command;

    fn ip(arguments: &str) -> String {
        output_of("ip", arguments)
    }

    fn ip_tc(arguments: &str) -> String {
        output_of("tc", arguments)
    }

    fn output_of(tool: &str, arguments: &str) -> String {
        let output = Command::new(tool).args(arguments.split(' ')).output().expect("iproute2 is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs only where the machine allows namespaces and has `ip`. The thread is the test's own.
    #[test]
    fn a_device_moves_and_gets_its_address_and_route() {
        let namespace = || {
            unshare(CloneFlags::CLONE_NEWNET)?;
            Ok::<_, Errno>(File::open("/proc/thread-self/ns/net").expect("a namespace"))
        };
        let (Ok(first), Ok(second)) = (namespace(), namespace()) else { return };
        setns(&first, CloneFlags::CLONE_NEWNET).unwrap();
        if Command::new("ip")
            .args(["link", "add", "fl0", "type", "veth", "peer", "name", "peer"])
            .output()
            .is_ok_and(|o| !o.status.success())
        {
            return;
        }
        let outside = Netlink::open().unwrap();
        outside.move_device(if_nametoindex("fl0").unwrap(), second.as_fd(), "eth0").unwrap();
        assert_eq!(if_nametoindex("fl0"), Err(Errno::ENODEV));
        assert_eq!(outside.switch_on(77, None), Err(Errno::ENODEV));
        setns(&second, CloneFlags::CLONE_NEWNET).unwrap();
        let (inside, device) = (Netlink::open().unwrap(), if_nametoindex("eth0").unwrap());
        inside.switch_on(device, Some(9000)).unwrap();
        inside.limit_segments(device, 1).unwrap();
        inside.shape(device, 62_500_000, 9000, 1000).unwrap();
        let address: IpAddr = "10.0.3.4".parse().unwrap();
        inside.add_address(device, address, 8).unwrap();
        let metrics =
            Metric::parse("rto_min 2ms quickack 1 initcwnd 20 rtt 3ms rttvar 2ms features ecn congctl reno").unwrap();
        inside.set_metrics(device, address, 8, &metrics).unwrap();
        let link = ip("-o -d link show eth0");
        assert!(link.contains("mtu 9000") && link.contains("gso_max_segs 1 "), "{link}");
        let queue = ip_tc("-d qdisc show dev eth0");
        // The kernel keeps the bucket as a time.
        let burst = queue.split("rate 500Mbit burst ").nth(1).and_then(|text| text.split('b').next()?.parse().ok());
        assert!(burst.is_some_and(|bytes: u32| (12_000..=12_125).contains(&bytes)), "{queue}");
        assert!(ip("-o addr show eth0").contains("inet 10.0.3.4/8"), "{}", ip("-o addr show eth0"));
        let routes = ip("route show");
        assert_eq!(routes.lines().count(), 1, "{routes}");
        assert!(routes.starts_with("10.0.0.0/8 dev eth0 proto kernel scope link src 10.0.3.4 "), "{routes}");
        for expected in
            ["rto_min lock 2ms", "quickack 1", "initcwnd 20", "rtt 3ms", "rttvar 2ms", "features ecn", "congctl reno"]
        {
            assert!(routes.contains(expected), "{expected}: {routes}");
        }
        let address: IpAddr = "fd00::a00:304".parse().unwrap();
        // A machine may be without IPv6.
        if inside.add_address(device, address, 15).is_ok() {
            inside.set_metrics(device, address, 15, &metrics).unwrap();
            let routes = ip("-6 route show fd00::a00:0/111");
            assert_eq!(routes.lines().count(), 1, "{routes}");
            assert!(routes.contains("proto kernel metric 256 ") && routes.contains("rto_min lock 2ms"), "{routes}");
        }
    }
}
