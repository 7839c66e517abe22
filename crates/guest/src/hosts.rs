//! Hosts: each has a name of its own, and a network namespace with one device, its address, its route and its settings.
//! A further link of a host is one more device there.

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
/// The mount point of sysfs, which shows the namespace's devices.
const DEVICES: &str = "/run/devices";
/// The setting of a namespace's own congestion control.
const CONTROL: &str = "net.ipv4.tcp_congestion_control";
/// Settings that keep a namespace from talking IPv6, which the fabric does not carry.
const NO_IPV6: [&str; 2] = ["net.ipv6.conf.all.disable_ipv6", "net.ipv6.conf.default.disable_ipv6"];
/// Settings that keep IPv6 from talking by itself: no routers, and no addresses but the one that is given.
const QUIET_IPV6: [(&str, &str); 3] = [("accept_ra", "0"), ("addr_gen_mode", "1"), ("accept_dad", "0")];
/// Packets that a device keeps waiting, as by default.
const QUEUED: u32 = 1000;
/// Name of a host's first device in its namespace.
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
/// Open files of a flow (two ends and a listener), or of a probe (two ends and a clock).
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

    /// A second handle of the host, for a further link of it.
    fn again(&self) -> Result<Self, GuestFailure> {
        let copy = |file: &File| file.try_clone().context(|| format!("{}: cannot open its namespaces", self.name));
        let (namespace, called) = (copy(&self.namespace)?, copy(&self.called)?);
        Ok(GuestHost { name: self.name.clone(), group: None, namespace, called })
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

/// The preparations that hosts need on a kernel of their own and on the machine's.
fn set_up_alike(plans: &[HostPlan], ipv6: bool) -> Result<Vec<GuestHost>, GuestFailure> {
    let home = File::open(OWN).context(|| format!("cannot open {OWN}"))?;
    let netlink = Netlink::open().context(|| "cannot open a netlink socket".into())?;
    fs::create_dir_all(NAMESPACES).context(|| format!("cannot make {NAMESPACES}"))?;
    let made = set_up_all(plans, ipv6, &home, &netlink);
    setns(&home, CloneFlags::CLONE_NEWNET).context(|| "cannot go back to the first namespace".into())?;
    made
}

fn set_up_all(plans: &[HostPlan], ipv6: bool, home: &File, outside: &Netlink) -> Result<Vec<GuestHost>, GuestFailure> {
    let mut hosts: Vec<GuestHost> = vec![];
    for (index, plan) in plans.iter().enumerate() {
        let host = match plan.link_of {
            None => make(plan, home)?,
            Some((owner, _)) => hosts[owner].again()?,
        };
        let device = bring_device(index, plan, plans.len(), &host, outside)?;
        host.enter()?;
        set_up_device(&device, plan, ipv6, &host.name)?;
        setns(home, CloneFlags::CLONE_NEWNET).context(|| format!("{}: cannot leave its namespace", host.name))?;
        hosts.push(host);
    }
    Ok(hosts)
}

/// Makes the host's namespaces.
fn make(plan: &HostPlan, home: &File) -> Result<GuestHost, GuestFailure> {
    let name = plan.names.first().cloned().unwrap_or_else(|| format!("host{}", plan.host));
    let failed = |what: &str| format!("{name}: cannot {what}");
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWUTS).context(|| failed("make its namespaces"))?;
    sethostname(&name).context(|| failed("give it its name"))?;
    let called = File::open(OWN_NAME).context(|| failed("open the namespace of its name"))?;
    let namespace = File::open(OWN).context(|| failed("open its network namespace"))?;
    give_name(&name).context(|| failed("name its network namespace"))?;
    setns(home, CloneFlags::CLONE_NEWNET).context(|| failed("leave its network namespace"))?;
    Ok(GuestHost { name, group: None, namespace, called })
}

/// Brings a device into its host's namespace; returns its name there.
fn bring_device(
    index: usize,
    plan: &HostPlan,
    devices: usize,
    host: &GuestHost,
    outside: &Netlink,
) -> Result<String, GuestFailure> {
    let device = format!("fl{index}");
    let name = plan.link_of.map_or_else(|| DEVICE.into(), |(_, number)| format!("eth{number}"));
    let number = if_nametoindex(device.as_str())
        .context(|| format!("{}: the kernel lacks the device {device}, one of {devices}", host.name))?;
    outside
        .move_device(number, host.namespace.as_fd(), &name)
        .context(|| format!("{}: cannot give it the device {device}", host.name))?;
    Ok(name)
}

/// Sets up a device of the current namespace.
fn set_up_device(device: &str, plan: &HostPlan, ipv6: bool, name: &str) -> Result<(), GuestFailure> {
    let failed = |what: &str| format!("{name}: cannot {what}");
    let inside = Netlink::open().context(|| failed("open a netlink socket"))?;
    let index_of = |device: &str| if_nametoindex(device).context(|| failed(&format!("find {device}")));
    inside.switch_on(index_of("lo")?, None).context(|| failed("switch lo on"))?;
    if ipv6 {
        QUIET_IPV6.iter().try_for_each(|(setting, value)| {
            let sysctl = Sysctl { name: format!("net.ipv6.conf.{device}.{setting}"), value: (*value).into() };
            set_sysctl(name, &sysctl)
        })?;
    }
    // Some sysctls hold only for what is made after them.
    plan.sysctls.iter().try_for_each(|sysctl| set_sysctl(name, sysctl))?;
    let number = index_of(device)?;
    inside
        .switch_on(number, Some(plan.mtu))
        .context(|| failed(&format!("switch {device} on with MTU {}", plan.mtu)))?;
    if !plan.bursts {
        inside.limit_segments(number, 1).context(|| failed(&format!("make {device} send packet by packet")))?;
    }
    let metrics = Metric::parse(&plan.route).context(|| format!("{name}: its route"))?;
    let addresses = [Some(plan.address.into()), ipv6.then(|| ipv6_of(plan.address).into())];
    for address in addresses.into_iter().flatten() {
        inside
            .add_address(number, address, plan.prefix)
            .context(|| failed(&format!("give it the address {address}")))?;
        if !metrics.is_empty() {
            let what = || failed(&format!("set '{}' on the route of {address}", plan.route));
            inside.set_metrics(number, address, plan.prefix, &metrics).context(what)?;
        }
    }
    Ok(())
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

/// Raises the limit of open files for all flows and probes.
pub fn raise_open_files(plan: &Plan) -> Result<(), GuestFailure> {
    let files = FILES + FILES_PER_FLOW * (plan.flows.len() + plan.probes.len()) as u64;
    setrlimit(Resource::RLIMIT_NOFILE, files, files).context(|| format!("cannot have {files} open files"))
}

/// Raises limits for all flows and probes that a kernel of little memory sets low: open files, threads, TCP's buffers.
pub fn raise_limits(plan: &Plan) -> Result<(), GuestFailure> {
    raise_open_files(plan)?;
    let threads = THREADS + 2 * (plan.flows.len() + plan.probes.len() + plan.programs.len());
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
            link_of: None,
            address: [10, 0, 0, 1].into(),
            prefix: 8,
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
