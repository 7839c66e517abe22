//! File systems that the kernel's programs expect, over the machine's own files.

use crate::failure::{Context, Failure};
use firstlight_linux::HostPlan;
use nix::mount::{MsFlags, mount};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// The names of all hosts, for programs.
const NAMES: &str = "/etc/hosts";
/// Where our own such file is made.
const OWN_NAMES: &str = "/run/hosts";

/// Mounts the kernel's devices, where it has not done so by itself. Without them there is nobody to tell of a failure.
pub fn devices() {
    if !Path::new(crate::engine::DEVICE).exists() {
        let _ = one("devtmpfs", "/dev");
    }
}

/// Mounts what a kernel offers: the machine's own root lies below.
pub fn system() -> Result<(), Failure> {
    one("proc", "/proc")?;
    one("sysfs", "/sys")?;
    one("tmpfs", "/run")?;
    fs::create_dir_all("/dev/shm").context(|| "cannot make /dev/shm".into())?;
    one("tmpfs", "/dev/shm")
}

fn one(kind: &str, target: &str) -> Result<(), Failure> {
    mount(Some(kind), target, Some(kind), MsFlags::empty(), None::<&str>)
        .context(|| format!("cannot mount {kind} on {target}"))
}

/// Gives programs the hosts' names.
pub fn names(hosts: &[HostPlan]) -> Result<(), Failure> {
    fs::write(OWN_NAMES, names_text(hosts)).context(|| format!("cannot write {OWN_NAMES}"))?;
    mount(Some(OWN_NAMES), NAMES, None::<&str>, MsFlags::MS_BIND, None::<&str>)
        .context(|| format!("cannot lay the hosts' names over {NAMES}"))
}

fn names_text(hosts: &[HostPlan]) -> String {
    let mut text = String::from("127.0.0.1 localhost\n");
    for host in hosts {
        writeln!(text, "{} {}", host.address, host.names.join(" ")).expect("a String takes all");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_each_host() {
        let host = |host: u16, names: &[&str]| HostPlan {
            host,
            names: names.iter().map(|name| name.to_string()).collect(),
            address: [10, 0, 0, host as u8 + 1].into(),
            mtu: 1500,
            route: String::new(),
            sysctls: vec![],
        };
        let hosts = [host(0, &["host0", "rack0.host0"]), host(7, &["host7"])];
        assert_eq!(names_text(&hosts), "127.0.0.1 localhost\n10.0.0.1 host0 rack0.host0\n10.0.0.8 host7\n");
    }
}
