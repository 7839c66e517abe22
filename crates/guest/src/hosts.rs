//! Hosts: each has a name of its own, and a network namespace with one device, its address, its route and its settings.

use crate::failure::{Context, GuestFailure};
use crate::netlink::Netlink;
use firstlight_linux::{DilatedHost, Dilation, HostPlan, Metric, Plan, Sysctl, ipv6_of};
use nix::mount::{MsFlags, mount, umount};
use nix::net::if_::if_nametoindex;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::sethostname;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Folder in which `ip netns` looks for namespaces by name.
const NAMESPACES: &str = "/run/netns";
/// The network namespace of the thread that opens it.
const OWN: &str = "/proc/thread-self/ns/net";
/// The namespace of the host name of the thread that opens it.
const OWN_NAME: &str = "/proc/thread-self/ns/uts";
/// Where the devices of a namespace are looked at.
const DEVICES: &str = "/run/devices";
/// The setting of a namespace's own congestion control.
const CONTROL: &str = "net.ipv4.tcp_congestion_control";
/// Settings that keep a namespace from talking IPv6, which the fabric does not carry.
const NO_IPV6: [&str; 2] = ["net.ipv6.conf.all.disable_ipv6", "net.ipv6.conf.default.disable_ipv6"];
/// Settings that keep IPv6 from talking by itself: no routers, and no addresses but the one that is given.
const QUIET_IPV6: [(&str, &str); 3] = [("accept_ra", "0"), ("addr_gen_mode", "1"), ("accept_dad", "0")];
/// Packets that a device keeps waiting, as by default.
const QUEUED: u32 = 1000;
/// Name of a host's device in its namespace.
const DEVICE: &str = "eth0";
/// Threads allowed beside those of flows and programs.
const THREADS: usize = 4096;
/// The least `kernel.pid_max`.
const LEAST_PIDS: usize = 32_768;
/// Memory mappings of a thread, with room to spare.
const MAPS_PER_THREAD: usize = 8;
/// The least `vm.max_map_count`.
const LEAST_MAPS: usize = 65_530;
/// Open files allowed beside those of flows.
const FILES: u64 = 1024;
/// Open files of a flow: two ends and a listener.
const FILES_PER_FLOW: u64 = 3;
/// Pages that TCP may use (`net.ipv4.tcp_mem`): without limit. The limits of a connection's own buffers hold. The bytes
/// of flows, which TCP counts, take no memory, so that a share of the memory would be no useful limit.
const TCP_PAGES: u64 = 1 << 40;

/// A host that is set up.
pub struct GuestHost {
    /// The host's first name.
    pub name: String,
    /// The file that a process writes its number to, to be one of the host's control group.
    pub group: Option<PathBuf>,
    pub(crate) namespace: File,
    /// The namespace in which the machine is called as the host.
    pub(crate) called: File,
}

impl GuestHost {
    /// Moves the calling thread into the host's namespaces.
    pub fn enter(&self) -> Result<(), GuestFailure> {
        setns(&self.namespace, CloneFlags::CLONE_NEWNET)
            .and_then(|()| setns(&self.called, CloneFlags::CLONE_NEWUTS))
            .context(|| format!("cannot enter the namespaces of {}", self.name))
    }
}

/// Sets up all hosts in the plan's order. The calling thread returns to its own namespace.
pub fn set_up(plans: &[HostPlan], ipv6: bool, dilation: Option<&Dilation>) -> Result<Vec<GuestHost>, GuestFailure> {
    let Some(dilation) = dilation else { return set_up_alike(plans, ipv6) };
    let plans: Vec<HostPlan> = plans.iter().cloned().map(of_shared_kernel).collect();
    let mut hosts = set_up_alike(&plans, false)?;
    let home = File::open(OWN).context(|| format!("cannot open {OWN}"))?;
    for ((host, plan), dilated) in hosts.iter_mut().zip(&plans).zip(&dilation.hosts) {
        host.enter()?;
        dilate(plan, dilated, &dilation.processors).context(|| host.name.clone())?;
        host.group.clone_from(&dilated.group);
    }
    setns(&home, CloneFlags::CLONE_NEWNET).context(|| "cannot go back to the first namespace".into())?;
    Ok(hosts)
}

/// The plan for hosts that share the machine's kernel. A namespace's own congestion control must be allowed on the
/// whole machine; a route's need not be.
fn of_shared_kernel(plan: HostPlan) -> HostPlan {
    let (chosen, mut sysctls): (Vec<Sysctl>, Vec<Sysctl>) =
        plan.sysctls.into_iter().partition(|sysctl| sysctl.name == CONTROL);
    sysctls.extend(NO_IPV6.map(|name| Sysctl { name: name.into(), value: "1".into() }));
    let control = chosen.last().map(|sysctl| format!(" congctl {}", sysctl.value)).unwrap_or_default();
    HostPlan { sysctls, route: plan.route + &control, ..plan }
}

/// What a kernel of their own and the machine's have in common.
fn set_up_alike(plans: &[HostPlan], ipv6: bool) -> Result<Vec<GuestHost>, GuestFailure> {
    let home = File::open(OWN).context(|| format!("cannot open {OWN}"))?;
    let netlink = Netlink::open().context(|| "cannot open a netlink socket".into())?;
    fs::create_dir_all(NAMESPACES).context(|| format!("cannot make {NAMESPACES}"))?;
    let set_up = |(index, plan): (usize, &HostPlan)| {
        let host = set_up_one(index, plan, plans.len(), ipv6, &home, &netlink)?;
        if ipv6 {
            add_ipv6(&host.name, plan)?;
        }
        Ok(host)
    };
    let made: Result<Vec<GuestHost>, GuestFailure> = plans.iter().enumerate().map(set_up).collect();
    setns(&home, CloneFlags::CLONE_NEWNET).context(|| "cannot go back to the first namespace".into())?;
    made
}

/// Makes the host's namespace, brings its device there and sets both up.
fn set_up_one(
    index: usize,
    plan: &HostPlan,
    hosts: usize,
    ipv6: bool,
    home: &File,
    outside: &Netlink,
) -> Result<GuestHost, GuestFailure> {
    let name = plan.names.first().cloned().unwrap_or_else(|| format!("host{}", plan.host));
    let failed = |what: &str| format!("{name}: cannot {what}");
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWUTS).context(|| failed("make its namespaces"))?;
    sethostname(&name).context(|| failed("give it its name"))?;
    let called = File::open(OWN_NAME).context(|| failed("open the namespace of its name"))?;
    let namespace = File::open(OWN).context(|| failed("open its network namespace"))?;
    give_name(&name).context(|| failed("name its network namespace"))?;
    setns(home, CloneFlags::CLONE_NEWNET).context(|| failed("leave its network namespace"))?;

    let device = format!("fl{index}");
    let number = if_nametoindex(device.as_str())
        .context(|| format!("{name}: the kernel lacks the device {device}, one of {hosts} for as many hosts"))?;
    outside
        .move_device(number, namespace.as_fd(), DEVICE)
        .context(|| failed(&format!("give it the device {device}")))?;

    let host = GuestHost { name: name.clone(), group: None, namespace, called };
    host.enter()?;
    let inside = Netlink::open().context(|| failed("open a netlink socket"))?;
    let index_of = |device: &str| if_nametoindex(device).context(|| failed(&format!("find {device}")));
    inside.switch_on(index_of("lo")?, None).context(|| failed("switch lo on"))?;
    if ipv6 {
        QUIET_IPV6.iter().try_for_each(|(setting, value)| {
            let sysctl = Sysctl { name: format!("net.ipv6.conf.{DEVICE}.{setting}"), value: (*value).into() };
            set_sysctl(&name, &sysctl)
        })?;
    }
    // Some sysctls hold only for what is made after them.
    plan.sysctls.iter().try_for_each(|sysctl| set_sysctl(&name, sysctl))?;
    let number = index_of(DEVICE)?;
    inside
        .switch_on(number, Some(plan.mtu))
        .context(|| failed(&format!("switch {DEVICE} on with MTU {}", plan.mtu)))?;
    if !plan.bursts {
        inside.limit_segments(number, 1).context(|| failed(&format!("make {DEVICE} send packet by packet")))?;
    }
    inside
        .add_address(number, plan.address.into())
        .context(|| failed(&format!("give it the address {}", plan.address)))?;
    let metrics = Metric::parse(&plan.route).context(|| format!("{name}: its route"))?;
    if !metrics.is_empty() {
        let what = || failed(&format!("set '{}' on its route", plan.route));
        inside.set_metrics(number, plan.address.into(), &metrics).context(what)?;
    }
    Ok(host)
}

/// Gives the device of the current namespace its IPv6 address, with the same attributes of its route.
fn add_ipv6(name: &str, plan: &HostPlan) -> Result<(), GuestFailure> {
    let address = ipv6_of(plan.address);
    let netlink = Netlink::open().context(|| format!("{name}: cannot open a netlink socket"))?;
    let number = if_nametoindex(DEVICE).context(|| format!("{name}: cannot find {DEVICE}"))?;
    netlink.add_address(number, address.into()).context(|| format!("{name}: cannot give it the address {address}"))?;
    let metrics = Metric::parse(&plan.route).context(|| format!("{name}: its route"))?;
    if metrics.is_empty() {
        return Ok(());
    }
    let what = || format!("{name}: cannot set '{}' on its route of IPv6", plan.route);
    netlink.set_metrics(number, address.into(), &metrics).context(what)
}

/// Makes the device of the current namespace take packets at its link's rate, and what arrives be handled on the hosts'
/// processors, whichever hands it over.
fn dilate(plan: &HostPlan, dilated: &DilatedHost, processors: &[usize]) -> Result<(), GuestFailure> {
    let netlink = Netlink::open().context(|| "cannot open a netlink socket".into())?;
    let device = if_nametoindex(DEVICE).context(|| format!("cannot find {DEVICE}"))?;
    netlink
        .shape(device, dilated.rate, plan.mtu, QUEUED)
        .context(|| format!("cannot limit {DEVICE} to {} B/s (CONFIG_NET_SCH_TBF)", dilated.rate))?;
    steer(processors).context(|| "cannot choose processors for what arrives (CONFIG_RPS)".into())
}

/// Writes the processors to the file system of the current namespace's devices, which is mounted for that alone.
fn steer(processors: &[usize]) -> std::io::Result<()> {
    fs::create_dir_all(DEVICES)?;
    mount(Some("sysfs"), DEVICES, Some("sysfs"), MsFlags::empty(), None::<&str>)?;
    let file = format!("{DEVICES}/class/net/{DEVICE}/queues/rx-0/rps_cpus");
    let done = fs::write(file, mask(processors));
    umount(DEVICES)?;
    done
}

/// Processors as the kernel writes sets of them: hexadecimal words of 32 bits, the highest first.
fn mask(processors: &[usize]) -> String {
    let words = processors.iter().max().map_or(1, |most| most / 32 + 1);
    let word = |index: usize| {
        processors.iter().filter(|one| **one / 32 == index).fold(0u32, |word, one| word | 1 << (one % 32))
    };
    (0..words).rev().map(|index| format!("{:08x}", word(index))).collect::<Vec<_>>().join(",")
}

/// Gives the current namespace a name for `ip netns`.
fn give_name(name: &str) -> std::io::Result<()> {
    let path = Path::new(NAMESPACES).join(name);
    File::create(&path)?;
    mount(Some(OWN), &path, None::<&str>, MsFlags::MS_BIND, None::<&str>).map_err(Into::into)
}

/// Sets a sysctl of the current namespace.
fn set_sysctl(host: &str, sysctl: &Sysctl) -> Result<(), GuestFailure> {
    let Sysctl { name, value } = sysctl;
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    if !Path::new(&path).exists() {
        return Err(GuestFailure::new(format!(
            "{host}: this kernel has no sysctl {name}: remove it, or choose another linux.version"
        )));
    }
    fs::write(&path, value).context(|| format!("{host}: cannot set {name} to '{value}'"))
}

/// Raises the limit of open files for all flows.
pub fn raise_open_files(plan: &Plan) -> Result<(), GuestFailure> {
    let files = FILES + FILES_PER_FLOW * plan.flows.len() as u64;
    setrlimit(Resource::RLIMIT_NOFILE, files, files).context(|| format!("cannot have {files} open files"))
}

/// Raises limits for all flows that a kernel of little memory sets low: open files, threads, TCP's buffers.
pub fn raise_limits(plan: &Plan) -> Result<(), GuestFailure> {
    raise_open_files(plan)?;
    let threads = THREADS + 2 * plan.flows.len() + 2 * plan.programs.len();
    let limits = [
        ("kernel/threads-max", threads.to_string()),
        ("kernel/pid_max", threads.max(LEAST_PIDS).to_string()),
        ("vm/max_map_count", (threads * MAPS_PER_THREAD).max(LEAST_MAPS).to_string()),
        ("net/ipv4/tcp_mem", format!("{TCP_PAGES} {TCP_PAGES} {TCP_PAGES}")),
    ];
    limits.iter().try_for_each(|(name, value)| {
        fs::write(format!("/proc/sys/{name}"), value).context(|| format!("cannot set {name} to {value}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_congestion_control_goes_to_the_route_where_the_kernel_is_shared() {
        let sysctl = |name: &str, value: &str| Sysctl { name: name.into(), value: value.into() };
        let plan = HostPlan {
            host: 0,
            names: vec![],
            address: [10, 0, 0, 1].into(),
            mtu: 9000,
            bursts: true,
            route: "initcwnd 5".into(),
            sysctls: vec![sysctl(CONTROL, "retcp"), sysctl("net.ipv4.tcp_ecn", "1")],
        };
        let shared = of_shared_kernel(plan);
        assert_eq!(shared.route, "initcwnd 5 congctl retcp");
        assert_eq!((shared.sysctls.len(), &shared.sysctls[0]), (3, &sysctl("net.ipv4.tcp_ecn", "1")));
    }

    #[test]
    fn processors_as_the_kernel_writes_them() {
        assert_eq!(
            [&[0, 1][..], &[3], &[], &[0, 33]].map(mask),
            ["00000003", "00000008", "00000000", "00000002,00000001"]
        );
    }
}
