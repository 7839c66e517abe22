//! Experiments on hosts in dilated time: Linux hosts with the machine's own kernel.

use firstlight_lab::spec::OverrideValue;
use firstlight_lab::{Spec, inspect, plan};

const PAIR: &str = include_str!("specs/pair.toml");
const DILATED: (&str, &str) = ("hosts.kind", "dilated");

fn read(set: &[(&str, &str)]) -> Result<Spec, String> {
    let overrides: Vec<_> = set.iter().map(|(k, v)| (k.to_string(), OverrideValue::Text(v.to_string()))).collect();
    Spec::read(PAIR, "x.toml", &overrides).map_err(|error| error.to_string())
}

/// Only the kernel differs: the plan of hosts and flows is that of hosts in virtual time.
#[test]
fn the_plan_is_that_of_linux_hosts() {
    let [dilated, linux] = [DILATED, ("hosts.kind", "linux")].map(|kind| read(&[kind]).unwrap());
    assert_eq!(plan(&dilated).unwrap(), plan(&linux).unwrap());
    assert_eq!([&dilated, &linux].map(|spec| spec.linux.as_ref().unwrap().dilated), [true, false]);
    assert_eq!(
        (&inspect(&dilated)["linux"]["dilated"], &dilated.resolved["hosts"]["kind"]),
        (&true.into(), &"dilated".into())
    );
    assert!(inspect(&dilated)["linux"]["tick_ms"].is_null(), "the machine's own");
}

#[test]
fn flows_that_name_linux_hosts_are_dilated_too() {
    let spec = read(&[DILATED, ("flows.0.hosts", "linux")]).unwrap();
    assert!(spec.linux.unwrap().dilated);
}

#[test]
fn simulated_flows_have_no_use_for_dilated_time() {
    let problem = read(&[DILATED, ("flows.0.hosts", "simulated")]).unwrap_err();
    assert!(problem.contains("hosts.kind") && problem.contains("has no effect"), "{problem}");
}

/// Limits of processor time are for hosts that share a machine.
#[test]
fn cores_are_those_of_hosts_in_dilated_time() {
    let cores = |set: &[(&str, &str)]| read(set).map(|spec| spec.linux.unwrap().cores);
    assert_eq!((cores(&[DILATED]), cores(&[DILATED, ("hosts.cores", "0.5")])), (Ok(None), Ok(Some(0.5))));
    let idle = cores(&[("hosts.kind", "linux"), ("hosts.cores", "2")]).unwrap_err();
    assert!(idle.contains("hosts.cores") && idle.contains("hosts.kind = \"dilated\""), "{idle}");
    let none = cores(&[DILATED, ("hosts.cores", "0")]).unwrap_err();
    assert!(none.contains("hosts.cores") && none.contains("0.001"), "{none}");
}

/// The kernel is the machine's: an experiment cannot choose another.
#[test]
fn keys_that_choose_a_kernel_are_refused() {
    for (key, value) in [("tcp.tick", "1ms"), ("linux.version", "6.12")] {
        let problem = read(&[DILATED, (key, value)]).unwrap_err();
        assert!(problem.contains(&format!("{key}: has no effect: hosts in dilated time")), "{problem}");
    }
}
