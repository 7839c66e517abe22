//! File systems that the kernel's programs expect: the machine's own files below a layer in memory, and the kernel's.

use crate::failure::{Context, GuestFailure};
use firstlight_linux::{NamePlan, ipv6_of};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::{chdir, pivot_root};
use std::fmt::Write;
use std::fs::{self, File};
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Folder for the run's files that programs see, and for files that replace some of the machine's.
const OWN: &str = "/run/firstlight";
/// Folder in memory for programs' changes of the machine's files, and for overlayfs' working files.
const UPPER: &str = "/run/upper";
const WORK: &str = "/run/work";
/// Folder in which the root is assembled.
const ROOT: &str = "/run/root";
/// The run's directory until it has no place.
const RUN: &str = "/run/run";
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

/// The folders of a run's files, as this program and its children see them.
#[derive(Clone, Debug)]
pub struct RunPlaces {
    /// The run's directory.
    pub directory: PathBuf,
    /// The folder of the programs' working directories.
    pub programs: PathBuf,
    /// The experiment's folder.
    pub experiment: PathBuf,
    /// A link to the machine's own path of that folder, and so to the folders beside and above it.
    pub origin: PathBuf,
}

impl RunPlaces {
    /// All places, in the run's directory.
    pub fn within(directory: &Path) -> Self {
        RunPlaces {
            directory: directory.into(),
            programs: directory.join("programs"),
            experiment: directory.join("experiment"),
            origin: directory.join("origin"),
        }
    }
}

/// Makes a root of the kernel's own: the machine's files below a layer in memory, which is gone with the kernel, and
/// the kernel's own file systems. Nobody sees the run's directory, whose path is another in each run; this program
/// holds it open.
pub fn system(directory: &Path) -> Result<RunPlaces, GuestFailure> {
    mount_one("tmpfs", "/run")?;
    for place in [UPPER, WORK, ROOT, RUN] {
        fs::create_dir(place).context(|| format!("cannot make {place}"))?;
    }
    machine_directory(directory, Path::new(RUN))?;
    let run = kept(Path::new(RUN))?;
    let layers = format!("lowerdir=/,upperdir={UPPER},workdir={WORK},redirect_dir=on");
    mount(Some("overlay"), ROOT, Some("overlay"), MsFlags::empty(), Some(layers.as_str()))
        .context(|| "cannot lay a layer over the machine's files".into())?;
    let experiment =
        fs::read_link(Path::new(RUN).join("experiment")).context(|| "cannot find the experiment's folder".into())?;
    let below = kept(&Path::new(ROOT).join(experiment.strip_prefix("/").unwrap_or(&experiment)))?;
    enter(ROOT).context(|| format!("cannot make {ROOT} the root"))?;

    ["devtmpfs /dev", "proc /proc", "sysfs /sys", "tmpfs /run"].into_iter().try_for_each(|pair| {
        let (kind, place) = pair.split_once(' ').expect("two words");
        mount_one(kind, place)
    })?;
    fs::create_dir_all("/dev/shm").context(|| "cannot make /dev/shm".into())?;
    mount_one("tmpfs", "/dev/shm")?;
    for (link, target) in LINKS {
        // Some systems have these links already.
        let _ = symlink(target, link);
    }
    if COVERED.iter().any(|place| experiment.starts_with(place)) {
        bind(&below, &experiment)?;
    }
    let places = RunPlaces { directory: run, ..RunPlaces::within(Path::new(OWN)) };
    fs::create_dir_all(&places.programs).context(|| format!("cannot make {}", places.programs.display()))?;
    symlink(&experiment, &places.origin).context(|| format!("cannot make {}", places.origin.display()))?;
    Ok(places)
}

/// Makes the experiment's folder visible in a place that is the same in each run, with all that is mounted in it: a
/// program that looks for the real path of a file there needs as many system calls wherever the folder lies.
pub fn experiment(places: &RunPlaces) -> Result<(), GuestFailure> {
    bind(&places.origin, &places.experiment)
}

/// Opens a directory for good, and returns a path to it that needs no mount.
fn kept(directory: &Path) -> Result<PathBuf, GuestFailure> {
    let opened = File::open(directory).context(|| format!("cannot open {}", directory.display()))?;
    Ok(format!("/proc/self/fd/{}", opened.into_raw_fd()).into())
}

/// Makes a directory the root, without the former one.
fn enter(root: &str) -> nix::Result<()> {
    chdir(root)?;
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    chdir("/")
}

/// Makes a directory of the machine visible, where programs then write to it itself.
pub fn machine_directory(directory: &Path, at: &Path) -> Result<(), GuestFailure> {
    let what = || format!("cannot make the machine's directory {} visible", directory.display());
    fs::create_dir_all(at).context(what)?;
    mount(Some("none"), at, Some("hostfs"), MsFlags::empty(), Some(directory)).context(what)
}

/// Makes a directory visible in a second place, with all that is mounted in it.
fn bind(directory: &Path, at: &Path) -> Result<(), GuestFailure> {
    let what = || format!("cannot see {}", at.display());
    fs::create_dir_all(at).context(what)?;
    mount(Some(directory), at, None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>).context(what)
}

/// Gives this program a view of the machine's files of its own: `/proc` with its processes, empty `/run` and
/// `/dev/shm`, and the run's directory in its place.
pub fn apart(directory: &Path) -> Result<RunPlaces, GuestFailure> {
    let apart = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, apart, None::<&str>).context(|| "cannot make mounts private".into())?;
    let kept = kept(directory)?;
    ["/run", "/dev/shm"].iter().try_for_each(|place| mount_one("tmpfs", place))?;
    mount_one("proc", "/proc")?;
    bind(&kept, directory)?;
    let places = RunPlaces::within(directory);
    Ok(RunPlaces { origin: places.experiment.clone(), ..places })
}

fn mount_one(kind: &str, target: &str) -> Result<(), GuestFailure> {
    mount(Some(kind), target, Some(kind), MsFlags::empty(), None::<&str>)
        .context(|| format!("cannot mount {kind} on {target}"))
}

/// Gives programs the hosts' names and no others.
pub fn names(hosts: &[NamePlan], ipv6: bool) -> Result<(), GuestFailure> {
    fs::create_dir_all(OWN).context(|| format!("cannot make {OWN}"))?;
    replace(NAMES, &names_text(hosts, ipv6))?;
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

fn names_text(hosts: &[NamePlan], ipv6: bool) -> String {
    let mut text = String::from("127.0.0.1 localhost\n");
    let mut line = |address: IpAddr, names: &str| writeln!(text, "{address} {names}").expect("a String takes all");
    hosts.iter().for_each(|host| line(host.address.into(), &host.names.join(" ")));
    if ipv6 {
        line(Ipv6Addr::LOCALHOST.into(), "localhost");
        hosts.iter().for_each(|host| line(ipv6_of(host.address).into(), &host.names.join(" ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_line_for_each_host() {
        let host = |last: u8, names: &[&str]| NamePlan {
            address: [10, 0, 0, last].into(),
            names: names.iter().map(|name| name.to_string()).collect(),
        };
        let hosts = [host(1, &["host0", "rack0.host0"]), host(8, &["host7"])];
        let text = "127.0.0.1 localhost\n10.0.0.1 host0 rack0.host0\n10.0.0.8 host7\n";
        assert_eq!(names_text(&hosts, false), text);
        let more = "::1 localhost\nfd00::a00:1 host0 rack0.host0\nfd00::a00:8 host7\n";
        assert_eq!(names_text(&hosts, true), format!("{text}{more}"));
    }
}
