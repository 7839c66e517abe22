//! File systems that the kernel's programs expect, mounted over the machine's own files.

use crate::failure::{Context, GuestFailure};
use firstlight_linux::HostPlan;
use nix::mount::{MsFlags, mount};
use std::fmt::Write;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Folder for files that replace some of the machine's.
const OWN: &str = "/run/firstlight";
/// The file that gives programs the names of all hosts.
const NAMES: &str = "/etc/hosts";
/// Files that would make a program ask a name server, which does not exist here, with the text that replaces theirs.
const RESOLVERS: [(&str, &str); 2] =
    [("/etc/resolv.conf", ""), ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n")];

/// Folders where the kernel's own file systems hide the machine's.
const COVERED: [&str; 2] = ["/dev", "/run"];

/// Links that programs expect in `/dev` and a kernel does not make.
const LINKS: [(&str, &str); 4] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

/// Mounts the kernel's devices unless the kernel has done so. Without them no failure can be reported.
pub fn devices() {
    if !Path::new(crate::engine_device::DEVICE).exists() {
        let _ = mount_one("devtmpfs", "/dev");
    }
}

/// Mounts the kernel's own file systems over the machine's root.
pub fn system() -> Result<(), GuestFailure> {
    mount_one("proc", "/proc")?;
    mount_one("sysfs", "/sys")?;
    mount_one("tmpfs", "/run")?;
    fs::create_dir_all("/dev/shm").context(|| "cannot make /dev/shm".into())?;
    mount_one("tmpfs", "/dev/shm")?;
    for (link, target) in LINKS {
        // Some systems have these links already.
        let _ = symlink(target, link);
    }
    Ok(())
}

/// Gives this program a view of the machine's files of its own: `/proc` with its processes, empty `/run` and
/// `/dev/shm`, and the run's directory in its place.
pub fn apart(directory: &Path) -> Result<(), GuestFailure> {
    let apart = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, apart, None::<&str>).context(|| "cannot make mounts private".into())?;
    let kept = File::open(directory).context(|| format!("cannot open {}", directory.display()))?;
    ["/run", "/dev/shm"].iter().try_for_each(|place| mount_one("tmpfs", place))?;
    mount_one("proc", "/proc")?;
    let from = format!("/proc/self/fd/{}", kept.as_raw_fd());
    let what = || format!("cannot see {}", directory.display());
    fs::create_dir_all(directory).context(what)?;
    mount(Some(from.as_str()), directory, None::<&str>, MsFlags::MS_BIND, None::<&str>).context(what)
}

fn mount_one(kind: &str, target: &str) -> Result<(), GuestFailure> {
    mount(Some(kind), target, Some(kind), MsFlags::empty(), None::<&str>)
        .context(|| format!("cannot mount {kind} on {target}"))
}

/// Makes a directory of the machine visible again at its own path, if a file system of the kernel hides it.
pub fn uncover(directory: &Path, file: &str) -> Result<(), GuestFailure> {
    let covered = COVERED.iter().any(|place| directory.starts_with(place));
    if !covered || directory.join(file).exists() {
        return Ok(());
    }
    let what = || format!("cannot make the machine's directory {} visible", directory.display());
    fs::create_dir_all(directory).context(what)?;
    mount(Some("none"), directory, Some("hostfs"), MsFlags::empty(), Some(directory)).context(what)
}

/// Gives programs the hosts' names and no others.
pub fn names(hosts: &[HostPlan]) -> Result<(), GuestFailure> {
    fs::create_dir_all(OWN).context(|| format!("cannot make {OWN}"))?;
    replace(NAMES, &names_text(hosts))?;
    let present = RESOLVERS.iter().filter(|(path, _)| Path::new(path).exists());
    present.into_iter().try_for_each(|(path, text)| replace(path, text))
}

/// Replaces the text of a file of the machine in this kernel, by a mount.
fn replace(path: &str, text: &str) -> Result<(), GuestFailure> {
    let own = Path::new(OWN).join(path.replace('/', "_"));
    fs::write(&own, text).context(|| format!("cannot write {}", own.display()))?;
    mount(Some(&own), path, None::<&str>, MsFlags::MS_BIND, None::<&str>)
        .context(|| format!("cannot mount {} over {path}", own.display()))
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
    fn names_have_a_line_for_each_host() {
        let host = |host: u16, names: &[&str]| HostPlan {
            host,
            names: names.iter().map(|name| name.to_string()).collect(),
            address: [10, 0, 0, host as u8 + 1].into(),
            mtu: 1500,
            bursts: true,
            route: String::new(),
            sysctls: vec![],
        };
        let hosts = [host(0, &["host0", "rack0.host0"]), host(7, &["host7"])];
        assert_eq!(names_text(&hosts), "127.0.0.1 localhost\n10.0.0.1 host0 rack0.host0\n10.0.0.8 host7\n");
    }
}
