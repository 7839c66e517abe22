//! Experiments with Linux hosts: what is read of them, and the plan for the program inside their kernel.

use firstlight_lab::spec::{ConnectionControl, OverrideValue};
use firstlight_lab::{Files, LabError, Spec, inspect, plan, run};
use firstlight_linux::{HostPlan, Plan};
use firstlight_transport::cc::CcName;
use std::ops::ControlFlow;

const PAIR: &str = include_str!("specs/pair.toml");
const INCAST: &str = include_str!("specs/incast.toml");
const LINUX: (&str, &str) = ("hosts.kind", "linux");

fn try_read(text: &str, set: &[(&str, &str)]) -> Result<Spec, String> {
    let overrides: Vec<_> = set.iter().map(|(k, v)| (k.to_string(), OverrideValue::Text(v.to_string()))).collect();
    Spec::read(text, "x.toml", &overrides).map_err(|error| error.to_string())
}

fn read(text: &str, set: &[(&str, &str)]) -> Spec {
    try_read(text, set).unwrap_or_else(|error| panic!("{error}"))
}

fn plan_of(text: &str, set: &[(&str, &str)]) -> Plan {
    plan(&read(text, set)).expect("it has Linux hosts")
}

/// The pair on Linux hosts, with more of TOML at its end.
fn linux_pair(more: &str) -> Plan {
    plan_of(&format!("{PAIR}{more}"), &[LINUX])
}

fn sysctl<'a>(host: &'a HostPlan, name: &str) -> Option<&'a str> {
    host.sysctls.iter().find(|sysctl| sysctl.name == name).map(|sysctl| sysctl.value.as_str())
}

fn parameters(plan: &Plan) -> Vec<String> {
    plan.parameters.iter().map(|p| format!("{}.{}={}", p.module, p.name, p.value)).collect()
}

#[test]
fn the_pair_on_linux_hosts() {
    let plan = linux_pair("");
    let hosts: Vec<u16> = plan.hosts.iter().map(|host| host.host).collect();
    assert_eq!(hosts, (0..32).collect::<Vec<u16>>());
    let last = &plan.hosts[31];
    assert_eq!(last.names, ["host31", "rack1.host15"]);
    assert_eq!((last.address.to_string().as_str(), last.mtu, last.route.as_str()), ("10.0.1.16", 9000, ""));
    assert_eq!(sysctl(last, "net.ipv4.tcp_no_metrics_save"), Some("1"));
    assert_eq!(sysctl(last, "net.ipv4.tcp_ecn"), None);
    let flow = &plan.flows[15];
    assert_eq!((flow.flow, flow.from, flow.to, flow.from_port, flow.to_port), (15, 15, 31, 10_000, 10_000));
    assert_eq!((flow.cc.as_str(), flow.size, flow.start), ("cubic", None, Some(0)));
    assert_eq!((plan.warmup, plan.duration, plan.ends_early, plan.tcp_info), (48_000_000, 144_000_000, false, None));
    assert!(plan.modules.is_empty() && plan.parameters.is_empty() && plan.programs.is_empty());
}

/// The module of DX has the keys of its table; the headroom is a packet's time by the hosts' own clocks.
#[test]
fn dx_is_a_module_of_ours() {
    let headroom = |set: &[(&str, &str)]| {
        let plan = plan_of(PAIR, &[&[LINUX, ("tcp.cc", "dx")], set].concat());
        assert_eq!(plan.modules, ["dx.ko"]);
        parameters(&plan)
    };
    let [none, all] =
        ["0", "1"].map(|on| ["host_rtt", "excess", "stop_at_sample"].map(|name| format!("dx.{name}={on}")));
    assert_eq!(headroom(&[]), [&["dx.headroom=1800000".into()][..], &none].concat());
    assert_eq!(headroom(&[("time_scale", "20")])[0], "dx.headroom=36000000");
    let given =
        [("dx.headroom", "8.4us"), ("dx.round_trip", "host"), ("dx.drain", "excess"), ("dx.slow_start", "sample")];
    assert_eq!(headroom(&given), [&["dx.headroom=8400000".into()][..], &all].concat());
}

/// A plan's times are of the hosts' clock, an experiment's of its own.
#[test]
fn time_scale_stretches_a_plan() {
    let set = [
        LINUX,
        ("time_scale", "20"),
        ("measure.tcp_info", "1ms"),
        ("measure.throughput", "1ms"),
        ("flows.0.start", "2us"),
    ];
    let plan = plan_of(PAIR, &set);
    assert_eq!((plan.warmup, plan.duration, plan.tcp_info), (960_000_000, 2_880_000_000, Some(20_000_000)));
    assert_eq!(plan.throughput_ps, Some(20_000_000_000));
    assert_eq!(plan.flows[0].start, Some(40_000));
}

/// Hosts that run Linux connect when simulated ones would.
#[test]
fn jitter_is_the_worlds() {
    let spec = read(INCAST, &[]);
    let simulated = firstlight_lab::build(&spec).expect("a world").flows();
    let plan = plan_of(INCAST, &[LINUX]);
    assert_eq!(plan.flows.len(), 20);
    assert!(plan.flows.iter().any(|flow| flow.start > Some(0)));
    for (flow, report) in plan.flows.iter().zip(simulated) {
        assert_eq!(flow.start, Some(report.start.as_ps().div_ceil(1000)));
        assert_eq!((flow.from_port, flow.to_port), (report.sport, report.dport));
        assert_eq!(flow.size, Some(1_000_000));
    }
    assert!(plan.ends_early);
    assert_eq!(plan.hosts[0].names, ["host0"]);
}

#[test]
fn names_of_congestion_controls() {
    let cc = |set: &[(&str, &str)]| read(PAIR, set).flows[0].cc.clone();
    assert_eq!(cc(&[LINUX, ("tcp.cc", "newreno")]), ConnectionControl::Linux("reno"));
    assert_eq!(cc(&[LINUX, ("tcp.cc", "bbr")]), ConnectionControl::Linux("bbr"));
    assert_eq!(cc(&[("tcp.cc", "reno")]).name(), "newreno");
    assert!(cc(&[("tcp.cc", "reno")]).simulated().is_some());
    let own = "[[linux.hosts]]\non = \"host0\"\ncc = \"vegas\"\n";
    let flows = linux_pair(own).flows;
    assert_eq!([&flows[0].cc, &flows[1].cc], ["vegas", "cubic"]);
}

#[test]
fn both_kinds_on_one_fabric() {
    let more = "[[flows]]\nfrom = \"host2\"\nto = \"host40\"\nhosts = \"linux\"\ncc = \"bbr\"\n";
    let text = format!("{PAIR}{more}");
    let plan = plan_of(&text, &[]);
    assert_eq!(plan.hosts.iter().map(|host| host.host).collect::<Vec<_>>(), [2, 40]);
    // Programs may use the names of all hosts, whatever these run.
    assert_eq!(plan.names.len(), 48);
    assert_eq!(plan.names[47].names, ["host47", "rack2.host15"]);
    assert_eq!(plan.names[47].address.to_string(), "10.0.2.16");
    // host2 has its simulated connection at port 10000.
    assert_eq!((plan.flows[0].flow, plan.flows[0].from_port, plan.flows[0].to_port), (16, 10_001, 10_000));
    assert!(!plan.ends_early);
    let reported = inspect(&read(&text, &[]));
    assert_eq!(reported["linux"]["flows"], 1);
    assert_eq!(
        (&reported["flows"][0]["hosts"], &reported["flows"][16]["hosts"]),
        (&"simulated".into(), &"linux".into())
    );
    assert!(inspect(&read(PAIR, &[]))["linux"].is_null());
}

/// The tweaks of the study of TCP over CEE.
#[test]
fn a_kernel_with_the_timers_of_a_study() {
    let tweaks = [
        LINUX,
        ("tcp.tick", "1ms"),
        ("tcp.rto_min", "2ms"),
        ("tcp.rto_variance", "20ms"),
        ("tcp.delayed_ack", "1ms"),
        ("tcp.send_buffer", "256kB"),
        ("tcp.receive_window", "256kB"),
        ("tcp.bursts", "false"),
    ];
    let plan = plan_of(PAIR, &tweaks);
    // SRTT + max(4 RTTVAR, 20 ms) is never below 2 ms.
    assert_eq!(plan.hosts[0].route, "rto_min 20ms");
    assert_eq!(parameters(&plan), ["firstlight.delack_max_ms=1"]);
    assert!(plan.hosts.iter().all(|host| !host.bursts) && linux_pair("").hosts.iter().all(|host| host.bursts));
    // Beside simulated hosts, which take both floors, a kernel has the timeout's own.
    let text = format!("{PAIR}[[flows]]\nfrom = \"host2\"\nto = \"host40\"\nhosts = \"linux\"\n");
    let both = plan_of(&text, &[("tcp.rto_min", "30ms"), ("tcp.rto_variance", "20ms")]);
    assert_eq!(both.hosts[0].route, "rto_min 30ms");
}

/// A kernel's receive buffer: least, first, most. Of the most, a packet's bookkeeping takes a part.
#[test]
fn receive_windows_are_buffers_of_a_kernel() {
    let rmem = |set: &[(&str, &str)]| {
        let set: Vec<_> = [LINUX].iter().chain(set).copied().collect();
        let plan = plan_of(PAIR, &set);
        sysctl(&plan.hosts[0], "net.ipv4.tcp_rmem").expect("it is always set").to_string()
    };
    let (window, small) = (("tcp.receive_window", "1MiB"), ("tcp.receive_window", "64KiB"));
    let (tuned, fixed) = (("tcp.autotune", "true"), ("tcp.autotune", "false"));
    assert_eq!(rmem(&[]), "4096 131072 6291456");
    assert_eq!(rmem(&[tuned]), "4096 131072 6291456");
    assert_eq!(rmem(&[fixed]), "4096 6291456 6291456");
    // 1 MiB and 832 B for each 8948 B of it.
    assert_eq!(rmem(&[window]), "4096 1146074 1146074");
    assert_eq!(rmem(&[window, fixed]), "4096 1146074 1146074");
    assert_eq!(rmem(&[window, tuned]), "4096 131072 1146074");
    assert_eq!(rmem(&[small, tuned]), "4096 71629 71629");
    assert_eq!(rmem(&[window, ("hosts.mtu", "1500B")]), "4096 1651072 1651072");
}

#[test]
fn parameters_of_controllers() {
    let dctcp = plan_of(PAIR, &[LINUX, ("tcp.cc", "dctcp"), ("dctcp.g", "0.25"), ("dctcp.initial_alpha", "0.5")]);
    assert_eq!(parameters(&dctcp), ["tcp_dctcp.dctcp_shift_g=2", "tcp_dctcp.dctcp_alpha_on_init=512"]);
    let cubic = [("cubic.beta", "0.5"), ("cubic.hystart", "false"), ("cubic.fast_convergence", "true")];
    let cubic = plan_of(PAIR, &[&[LINUX], &cubic[..]].concat());
    assert_eq!(parameters(&cubic), ["tcp_cubic.beta=512", "tcp_cubic.fast_convergence=1", "tcp_cubic.hystart=0"]);
    let retcp = plan_of(PAIR, &[LINUX, ("tcp.cc", "retcp"), ("retcp.alpha", "4"), ("retcp.beta", "0.29")]);
    assert_eq!(parameters(&retcp), ["retcp.alpha=400", "retcp.beta=29"]);
    assert_eq!(retcp.modules, ["retcp.ko"]);
    let vegas = plan_of(PAIR, &[LINUX, ("tcp.cc", "vegas"), ("vegas.alpha", "3"), ("vegas.gamma", "2")]);
    assert_eq!(parameters(&vegas), ["tcp_vegas.alpha=3", "tcp_vegas.gamma=2"]);
    for (name, value) in [("net.ipv4.tcp_ecn", "1"), ("net.ipv4.tcp_ecn_fallback", "0")] {
        assert!(retcp.hosts.iter().all(|host| sysctl(host, name) == Some(value)), "{name}");
    }
}

#[test]
fn later_settings_come_after_earlier_ones() {
    let more = "[linux]\nsysctls = [\"net.ipv4.tcp_ecn=0\", \
                \"net.ipv4.tcp_rmem=1 2 3\"]\nroute = \"rto_min 2ms quickack 1\"\n\
                [[linux.hosts]]\non = \"rack0\"\nsysctls = [\"net.ipv4.tcp_ecn=2\"]\nroute = \"rto_min 7ms\"\n\
                mtu = \"1500B\"\n\
                [[linux.hosts]]\non = \"rack0.host1\"\nmtu = \"4000B\"\n";
    let plan = plan_of(&format!("{PAIR}{more}"), &[LINUX, ("tcp.ecn", "true"), ("tcp.rto_min", "5ms")]);
    let reported = |host: usize| {
        let host = &plan.hosts[host];
        (host.mtu, host.route.as_str(), sysctl(host, "net.ipv4.tcp_ecn").unwrap())
    };
    assert_eq!(reported(0), (1500, "quickack 1 rto_min 7ms", "2"));
    assert_eq!(reported(1), (4000, "quickack 1 rto_min 7ms", "2"));
    assert_eq!(reported(16), (9000, "rto_min 2ms quickack 1", "0"));
    assert_eq!(sysctl(&plan.hosts[0], "net.ipv4.tcp_rmem"), Some("1 2 3"));
    assert_eq!(plan.hosts[0].sysctls.iter().filter(|sysctl| sysctl.name == "net.ipv4.tcp_ecn").count(), 1);
}

const PROGRAMS: &str = "\
duration = \"1s\"\n[fabric]\nkind = \"star\"\nhosts = 9\n[hosts]\nrate = \"10Gbps\"\nkind = \"linux\"\n\
[[program]]\non = \"host3\"\nrun = \"ping -c 3 host1 host99\"\nstart = \"1ms\"\n\
[[program]]\non = \"all\"\nrun = \"/usr/bin/iperf3 -s\"\nserver = true\nname = \"sink\"\n";

#[test]
fn programs_without_flows() {
    let one = PROGRAMS.replace("on = \"all\"", "on = \"host8\"");
    let plan = plan_of(&one, &[("time_scale", "2")]);
    assert_eq!(plan.hosts.iter().map(|host| host.host).collect::<Vec<_>>(), [1, 3, 8]);
    let [ping, sink] = plan.programs.as_slice() else { panic!("{:?}", plan.programs) };
    assert_eq!((ping.name.as_str(), ping.on, ping.start, ping.server), ("0-ping-host3", 1, 2_000_000, false));
    assert_eq!(
        (sink.name.as_str(), sink.on, sink.command.as_str(), sink.server),
        ("sink", 2, "/usr/bin/iperf3 -s", true)
    );
    assert_eq!(sysctl(&plan.hosts[0], "net.ipv4.tcp_congestion_control"), Some("cubic"));
    assert!(plan.ends_early);
    assert!(!plan_of(&one, &[("program.0.server", "true")]).ends_early);
    let everywhere = plan_of(PROGRAMS, &[]).programs;
    assert_eq!((everywhere.len(), everywhere[9].name.as_str()), (10, "sink-host8"));
    let retcp = plan_of(&one, &[("tcp.cc", "retcp")]);
    assert_eq!((retcp.modules, sysctl(&retcp.hosts[1], "net.ipv4.tcp_ecn")), (vec!["retcp.ko".to_string()], Some("1")));
}

const LADDER: &str = r#"
duration = "1ms"
time_scale = 2
[fabric]
kind = "star"
hosts = 4
[hosts]
rate = "10Gbps"
delay = "1us"
[[workload]]
kind = "probe"
from = "host0"
to = "host3"
packet = "1500B"
interval = "1200001ps"
class = 3
[[workload]]
kind = "probe"
from = "host1"
to = "host3"
interval = "100us"
start = "200us"
count = 9
[[workload]]
kind = "udp"
from = "host2"
to = "host3"
rate = "1Gbps"
"#;

/// Probes are sent by the hosts of the experiment's kind or of their own; other datagrams by simulated hosts.
#[test]
fn probes_on_linux_hosts() {
    let probes = |set: &[(&str, &str)]| plan_of(LADDER, set).probes;
    let [stream, ping] = &probes(&[LINUX])[..] else { panic!("two probes, one for each pair") };
    assert_eq!((stream.from, stream.to, stream.from_port, stream.to_port), (0, 2, 1024, 9));
    assert_eq!((ping.from, ping.to, ping.from_port, ping.to_port), (1, 2, 1025, 9));
    assert_eq!(
        (stream.class, stream.payload, stream.start_ps, stream.every_ps, stream.count),
        (3, 1472, 0, 2_400_002, None)
    );
    assert_eq!(
        (ping.class, ping.payload, ping.start_ps, ping.every_ps, ping.count),
        (0, 36, 400_000_000, 200_000_000, Some(9))
    );
    let plan = plan_of(LADDER, &[LINUX]);
    assert!(!plan.ends_early && plan.flows.is_empty());
    assert_eq!(plan.hosts.iter().map(|host| host.host).collect::<Vec<_>>(), [0, 1, 3]);
    assert_eq!(probes(&[("workload.1.hosts", "linux")]).len(), 1);
    assert_eq!(probes(&[LINUX, ("workload.1.hosts", "simulated")]).len(), 1);
    assert_eq!(read(LADDER, &[LINUX]).resolved["hosts"]["kind"], "linux");
    let mtu = format!("{LADDER}[[linux.hosts]]\non = \"host0\"\nmtu = \"1400B\"\n");
    for (text, set, expected) in [
        (
            &mtu[..],
            &[LINUX][..],
            "x.toml:14:10: workload.0.packet: 1500B are more than the MTU of host0, 1400B: use at most that",
        ),
        (
            LADDER,
            &[LINUX, ("workload.0.send_buffer", "9kB")],
            "x.toml, from --set workload.0.send_buffer: workload.0.send_buffer: a Linux kernel has no such setting: \
             its buffer counts packets' memory too; take it out",
        ),
        (
            LADDER,
            &[("workload.0.hosts", "linux"), ("workload.1.hosts", "linux"), LINUX],
            "x.toml, from --set hosts.kind: hosts.kind: has no effect: it counts only when a flow or a probe names no \
             hosts of its own, but each names its own; take it out",
        ),
        (
            &format!("{LADDER}[[flows]]\nfrom = \"host0\"\nto = \"host1\"\n"),
            &[("workload.0.hosts", "linux"), ("hosts.kind", "dilated")],
            "x.toml, from --set workload.0.hosts: workload.0.hosts: hosts in dilated time send no probes: take it out, \
             or use Linux hosts in virtual time (hosts.kind = \"linux\")",
        ),
    ] {
        assert_eq!(try_read(text, set).err().as_deref(), Some(expected));
    }
}

/// The files of a module's directory are inputs, except for what a build leaves there.
#[test]
fn a_module_and_its_congestion_control() {
    let folder = std::env::temp_dir().join(format!("firstlight-module-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("inside")).unwrap();
    for file in ["Kbuild", "mine.c", "mine.h", "mine.mod.c", "mine.o", ".mine.o.cmd", "inside/more.c", "notes"] {
        std::fs::write(folder.join(file), file).unwrap();
    }
    let text =
        format!("{PAIR}[linux]\nmodules = [\"{}\"]\n[[program]]\non = \"host0\"\nrun = \"true\"\n", folder.display());
    let spec = read(&text, &[LINUX, ("flows.0.cc", "mine")]);
    let other = plan_of(&text, &[LINUX, ("tcp.cc", "mine"), ("flows.0.cc", "cubic")]);
    std::fs::remove_dir_all(&folder).unwrap();
    let linux = spec.linux.as_ref().unwrap();
    assert_eq!(linux.own_modules[0].sources, ["Kbuild", "inside/more.c", "mine.c", "mine.h"]);
    assert_eq!(linux.own_modules[0].place, "x.toml:44:11: linux.modules");
    let inputs = linux.own_modules[0].sources.iter().map(|file| format!("{}/{file}", folder.display()));
    assert!(spec.inputs.keys().eq(&inputs.collect::<Vec<_>>()));
    assert_eq!(spec.flows[0].cc, ConnectionControl::Linux("mine"));
    assert_eq!(sysctl(&other.hosts[0], "net.ipv4.tcp_congestion_control"), Some("mine"));
}

/// A profile's costs and the keys' own are parameters of the driver; where nothing takes time there are none.
#[test]
fn processors_of_the_hosts() {
    let cpu = |keys: &str| parameters(&linux_pair(&format!("[linux.cpu]\n{keys}\n")));
    assert_eq!(cpu("profile = \"none\""), [""; 0]);
    assert_eq!(
        cpu("profile = \"xeon-e5-2430\"\ncores = 2\nsyscall = \"1us\"\nmoderation = \"8us\""),
        [
            "firstlight.cores=2",
            "firstlight.syscall_ps=1000000",
            "firstlight.clock_ps=16000",
            "firstlight.wakeup_ps=2400000",
            "firstlight.copy_ps=332",
            "firstlight.packet_ps=1260000",
            "firstlight.send_ps=1050000",
            "firstlight.moderation_ps=8000000"
        ]
    );
    let resolved = read(PAIR, &[LINUX, ("linux.cpu.wakeup", "2us")]).resolved;
    assert_eq!(resolved["linux"]["cpu"]["wakeup"], "2us");
}

/// The resolved experiment, read again, asks for the same plan.
#[test]
fn what_is_a_kernels_own_is_not_resolved() {
    let spec = read(PAIR, &[LINUX, ("tcp.rto_min", "2ms"), ("tcp.cc", "dctcp")]);
    assert_eq!(spec.resolved["tcp"], serde_json::json!({"cc": "dctcp", "rto_min": "2ms", "tick": "4ms"}));
    assert_eq!(spec.resolved["hosts"]["kind"], "linux");
    assert!(spec.resolved.get("dctcp").is_none());
    let simulated = read(PAIR, &[]).resolved;
    assert_eq!((&simulated["hosts"]["kind"], &simulated["tcp"]["rto_min"]), (&"simulated".into(), &"200ms".into()));
}

#[test]
fn each_kind_is_run_by_its_own() {
    let reported = run(&read(PAIR, &[LINUX]), &[], &Files::default(), &mut |_| ControlFlow::Continue(()));
    assert!(matches!(reported, Err(LabError::LinuxHosts)));
    assert!(matches!(plan(&read(PAIR, &[])), Err(LabError::NoLinuxHosts)));
}

/// More of TOML, overrides, the whole message.
type WrongInput<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);

#[test]
#[rustfmt::skip]
fn what_cannot_be() {
    let only = |when: &str, found: &str| format!("has no effect: it counts only when {when}, but {found}; take it out");
    let none = only("there are Linux hosts", "all hosts are simulated");
    let names: Vec<&str> = CcName::all().map(CcName::as_str).collect();
    let cases: &[WrongInput<'_>] = &[
        ("[linux]\n", &[], &format!("x.toml:43:2: linux: {none}")),
        ("[[linux.hosts]]\non = \"all\"\n", &[], &format!("x.toml:43:3: linux: {none}")),
        ("[[program]]\non = \"host0\"\nrun = \"true\"\n", &[], &format!("x.toml:43:1: program.0: {}",
         only("hosts.kind = \"linux\" or \"dilated\"", "it is \"simulated\""))),
        ("", &[("measure.tcp_info", "1ms")], &format!("x.toml, from --set measure.tcp_info: measure.tcp_info: {}",
         only("a flow has Linux hosts", "none has"))),
        ("", &[LINUX, ("flows.0.hosts", "simulated")], &format!("x.toml, from --set hosts.kind: hosts.kind: {}",
         only("a flow or a probe names no hosts of its own", "each names its own"))),
        ("", &[LINUX, ("cubic.coarse", "true")], &format!("x.toml, from --set cubic.coarse: cubic.coarse: {}",
         only("a flow has simulated hosts", "all flows have Linux hosts"))),
        ("", &[LINUX, ("flows.0.hosts", "windows")],
         "x.toml, from --set flows.0.hosts: flows.0.hosts: 'windows' is not one of simulated, linux"),
        ("", &[LINUX, ("tcp.tick", "2ms")], "x.toml, from --set tcp.tick: tcp.tick: there is no kernel with a tick \
                                             of 2ms: use 1ms, 4ms or 10ms (HZ=1000, 250, 100)"),
        ("[linux]\nversion = \"new\"\n", &[LINUX],
         "x.toml:44:11: linux.version: 'new' is not a version of Linux: write for example \"6.12\""),
        ("[linux]\nversion = 6.12\n", &[LINUX], "x.toml:44:11: linux.version: expected a version of Linux, as a \
                                                 text, found the number 6.12: write for example \"6.12\""),
        ("[linux]\nmodules = [\"nowhere\"]\npatches = [\"tests\"]\n", &[LINUX],
         "x.toml:44:11: linux.modules: cannot read nowhere: No such file or directory (os error 2)"),
        ("[linux]\nmodules = [\"tests\", \"Cargo.toml\"]\n", &[LINUX],
         "x.toml:44:11: linux.modules: tests: the directory has no Kbuild: write one with the line obj-m := NAME.o, \
          for a module from NAME.c\n\
          x.toml:44:11: linux.modules: Cargo.toml: neither a module's directory nor a built module (.ko)"),
        ("[linux]\npatches = [\"a.patch\"]\n", &[LINUX],
         "x.toml:44:11: linux.patches: cannot read a.patch: No such file or directory (os error 2)"),
        ("[linux]\nmodules = [\"nowhere\"]\n[[flows]]\nfrom = \"rack0\"\nto = \"rack1\"\nhosts = \"simulated\"\n\
          cc = \"mine\"\n", &[LINUX],
         "x.toml:49:6: flows.1.cc: mine exists in Linux kernels only, and these hosts are simulated: use another, or \
          Linux hosts"),
        ("[linux]\nmodules = []\n", &[LINUX, ("tcp.cc", "mine")],
         &format!("x.toml, from --set tcp.cc: tcp.cc: 'mine' is not one of {}", names.join(", "))),
        ("[linux]\nmodules = [\"nowhere\"]\n", &[LINUX, ("tcp.cc", "longer_than_linux")],
         &format!("x.toml, from --set tcp.cc: tcp.cc: 'longer_than_linux' is not one of {}", names.join(", "))),
        ("[linux]\nmodules = [\"nowhere\"]\n", &[("hosts.kind", "dilated")],
         "x.toml:44:11: linux.modules: has no effect: hosts in dilated time have this machine's kernel; take it out"),
        ("[linux]\nmemory = \"4GB\"\n", &[("hosts.kind", "dilated")],
         "x.toml:44:10: linux.memory: has no effect: hosts in dilated time have this machine's memory; take it out"),
        ("[linux]\nmemory = \"4MB\"\n", &[LINUX],
         "x.toml:44:10: linux.memory: 4MB is out of range: use 256MB to 1TB"),
        ("[linux.cpu]\nprofile = \"xeon-e5-2430\"\n", &[], &format!("x.toml:43:2: linux: {none}")),
        ("[linux.cpu]\nprofile = \"xeon-e5-2340\"\n", &[LINUX],
         "x.toml:44:11: linux.cpu.profile: 'xeon-e5-2340' is not one of none, xeon-e5-2430: did you mean \
          \"xeon-e5-2430\"?"),
        ("[linux.cpu]\nsyscal = \"1us\"\n", &[LINUX],
         "x.toml:44:1: linux.cpu.syscal: unknown key: did you mean linux.cpu.syscall?"),
        ("[linux.cpu]\nsyscall = \"-1us\"\ncopy = \"2us\"\ncores = 0\n", &[LINUX],
         "x.toml:44:11: linux.cpu.syscall: '-1us' is not a time: write for example \"180us\"\n\
          x.toml:45:8: linux.cpu.copy: 2us is out of range: use at most 1us\n\
          x.toml:46:9: linux.cpu.cores: 0 is out of range: use 1 to 64"),
        ("[linux.cpu]\ncores = 2\n", &[LINUX],
         "x.toml:44:9: linux.cpu.cores: nothing takes time on these processors: choose a profile, give a cost, or \
          take this out"),
        ("[linux.cpu]\nsyscall = \"1us\"\n", &[("hosts.kind", "dilated")],
         "x.toml:43:8: linux.cpu: has no effect: hosts in dilated time have this machine's processors; take it out"),
        ("", &[LINUX, ("cubic.beta", "1")],
         "x.toml, from --set cubic.beta: cubic.beta: a Linux host takes less than 1: use at most 0.999"),
        ("", &[LINUX, ("tcp.rto_min", "1500us")], "x.toml, from --set tcp.rto_min: tcp.rto_min: a Linux host counts \
                                                   it in whole milliseconds: write \"1ms\" or more"),
        ("", &[LINUX, ("tcp.rto_max", "121s")],
         "x.toml, from --set tcp.rto_max: tcp.rto_max: a Linux host takes whole milliseconds from 1s to 120s"),
        ("", &[LINUX, ("tcp.rto_variance", "20ms")],
         "x.toml, from --set tcp.rto_variance: tcp.rto_variance: a Linux kernel has no such setting: the timeout and \
          its variance term have one floor there, tcp.rto_min (200ms); take it out"),
        ("", &[LINUX, ("tcp.send_buffer", "128KiB")],
         "x.toml, from --set tcp.send_buffer: tcp.send_buffer: a Linux kernel has no such setting: its buffer counts \
          packets' memory too; give linux.sysctls an entry \"net.ipv4.tcp_wmem=4096 16384 524288\", or a \
          tcp.receive_window that is not larger; take it out"),
        ("", &[LINUX, ("tcp.rto_initial", "1500us")],
         "x.toml, from --set tcp.rto_initial: tcp.rto_initial: a Linux host takes whole milliseconds from 1ms to \
          60000ms"),
        ("", &[LINUX, ("tcp.delayed_ack", "41ms")],
         "x.toml, from --set tcp.delayed_ack: tcp.delayed_ack: a Linux host takes whole milliseconds from 1ms to 40ms"),
        ("", &[LINUX, ("tcp.quick_acks", "1")], "x.toml, from --set tcp.quick_acks: tcp.quick_acks: a Linux kernel \
                                                 has no such setting: it acknowledges the first 16 packets at \
                                                 once, or all with linux.route = \"quickack 1\"; take it out"),
        ("", &[LINUX, ("tcp.cc", "dctcp"), ("dctcp.g", "0.3")],
         "x.toml, from --set dctcp.g: dctcp.g: a Linux host takes 1, 0.5, 0.25 and so on down to 1/1024, not 0.3: \
          write for example 0.0625"),
        ("", &[LINUX, ("tcp.cc", "retcp"), ("retcp.beta", "0.125")],
         "x.toml, from --set retcp.beta: retcp.beta: a Linux host takes whole hundredths, not 0.125"),
        ("", &[LINUX, ("tcp.cc", "timely")], "x.toml, from --set tcp.cc: tcp.cc: no kernel has timely, and these \
                                              hosts are Linux hosts: use another, or simulated hosts"),
        ("", &[LINUX, ("tcp.cc", "dx"), ("dx.headroom", "5ms")],
         "x.toml, from --set dx.headroom: dx.headroom: a Linux host takes at most 4ms, not 5ms"),
        ("", &[("hosts.kind", "dilated"), ("tcp.cc", "dx")],
         "x.toml, from --set tcp.cc: tcp.cc: dx needs our kernel, and hosts in dilated time have this machine's: use \
          another, or Linux hosts in virtual time (hosts.kind = \"linux\")"),
        ("[[linux.hosts]]\non = \"rack0\"\ncc = \"swift\"\n", &[LINUX],
         "x.toml:45:6: linux.hosts.0.cc: no kernel has swift, and these hosts are Linux hosts: use another, or \
          simulated hosts"),
        ("", &[LINUX, ("tcp.cc", "retcp"), ("retcp.alpha", "101")],
         "x.toml, from --set retcp.alpha: retcp.alpha: a Linux host takes at most 100"),
        ("", &[LINUX, ("linux.sysctls", "[\"tcp_ecn=1\"]")],
         "x.toml, from --set linux.sysctls: linux.sysctls: 'tcp_ecn' is not a setting of a network namespace: those \
          are called net.ipv4.tcp_ecn and so on"),
        ("", &[LINUX, ("linux.sysctls", "[\"net.ipv4.tcp_ecn\"]")],
         "x.toml, from --set linux.sysctls: linux.sysctls: 'net.ipv4.tcp_ecn' sets nothing: write for example \
          \"net.ipv4.tcp_ecn=1\""),
        ("", &[LINUX, ("linux.sysctls", "net.ipv4.tcp_ecn=1")],
         "x.toml, from --set linux.sysctls: linux.sysctls: expected a list of settings, found the text \
          \"net.ipv4.tcp_ecn=1\": write for example [\"net.ipv4.tcp_ecn=1\"]"),
        ("", &[LINUX, ("linux.route", "rto_mn 2ms")],
         "x.toml, from --set linux.route: linux.route: 'rto_mn' is not an attribute of a route: did you mean rto_min?"),
        ("", &[LINUX, ("linux.route", "rto_min fast")],
         "x.toml, from --set linux.route: linux.route: rto_min 'fast' is not a time: write 2ms"),
        ("", &[LINUX, ("linux.route", "quickack")],
         "x.toml, from --set linux.route: linux.route: quickack has no value: write for example \"rto_min 2ms \
          quickack 1\""),
        ("[[linux.hosts]]\non = \"rack2\"\n", &[LINUX],
         "x.toml:44:6: linux.hosts.0.on: has no effect: no flow with Linux hosts and no program is on any of these; \
          take it out"),
        ("[[linux.hosts]]\non = \"rack3\"\n", &[LINUX],
         "x.toml:44:6: linux.hosts.0.on: there is no rack3: the fabric has rack0 to rack2"),
        ("[[linux.hosts]]\non = \"all\"\nmtu = \"9001B\"\n", &[LINUX],
         "x.toml:45:7: linux.hosts.0.mtu: 9001B is more than hosts.mtu, 9kB: use at most that"),
        ("", &[LINUX, ("measure.tcp_info", "100ns")],
         "x.toml, from --set measure.tcp_info: measure.tcp_info: 100ns makes 23040000 samples of 16 flows: use at \
          most 5000000, by a longer span"),
        ("[[program]]\non = \"host0\"\nrun = \"true\"\nname = \"a/b\"\n", &[LINUX],
         "x.toml:46:8: program.0.name: it names files: use letters, digits, '-', '_' and '.', a letter or digit \
          first, and at most 100 of them"),
        ("[[program]]\non = \"host0\"\nrun = \"true\"\nname = \"a\"\n[[program]]\non = \"host1\"\nrun = \"true\"\n\
          name = \"a\"\n", &[LINUX],
         "x.toml:50:8: program.1.name: two programs are called 'a': give each a name of its own"),
        ("[[program]]\non = \"host0\"\nrun = \"true\"\nstart = \"144ms\"\n", &[LINUX],
         "x.toml:46:9: program.0.start: it would start after the run's end: use less than duration, 144ms"),
        ("", &[LINUX, ("flows.0.count", "626")],
         "x.toml: flows: 10016 Linux flows are too many for one kernel: use at most 10000"),
        ("[[program]]\nrun = \"true\"\n", &[LINUX],
         "x.toml:43:1: program.0.on: missing: write for example on = \"rack0\" in [[program]]"),
    ];
    let mut wrong = String::new();
    for (more, set, expected) in cases {
        let found = try_read(&format!("{PAIR}{more}"), set).err().unwrap_or_else(|| "accepted".into());
        if found != *expected {
            wrong += &format!("\n{more:?} {set:?}\n  expected: {expected}\n  found:    {found}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn flows_have_the_settings_of_their_sockets() {
    let of = |set: &[(&str, &str)]| {
        let plan = plan_of(PAIR, &[&[LINUX], set].concat());
        (plan.flows[0].nagle, plan.flows[0].interactive)
    };
    assert_eq!(of(&[]), (false, false));
    assert_eq!(of(&[("tcp.nagle", "true")]), (true, false));
    assert_eq!(of(&[("tcp.interactive", "true")]), (false, true));
}
