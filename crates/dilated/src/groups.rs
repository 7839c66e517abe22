//! Control groups: one for each host, so that hosts share processors alike, and no host has more than its cores.
//!
//! Version 1 has a hierarchy of its own for processors, version 2 one for all; either will do. A run's groups lie in a
//! group named after the engine's process. They are removed with the run, or by the next one.

use crate::error::Error;
use firstlight_linux::Context;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The kernel's list of mounts.
const MOUNTS: &str = "/proc/self/mounts";
/// Names of groups of runs, before the number of the engine's process.
const PREFIX: &str = "firstlight-";
/// The shortest time within which processor time is dealt out, and the least share of it, in microseconds.
const PERIOD: u64 = 10_000;
const LEAST_QUOTA: u64 = 1_000;
/// The longest such time.
const LONGEST_PERIOD: u64 = 1_000_000;
/// Processes that were killed leave their group a little later.
const PATIENCE: u32 = 200;

/// A directory in which groups can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Hierarchy {
    One(PathBuf),
    Two(PathBuf),
}

impl Hierarchy {
    /// The hierarchy that shares out processors, by the kernel's list of mounts.
    fn find(mounts: &str) -> Option<Self> {
        let rows = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let (mut one, mut two) = (None, None);
        for row in rows.filter(|row| row.len() >= 4) {
            let place = PathBuf::from(row[1]);
            match row[2] {
                "cgroup" if row[3].split(',').any(|option| option == "cpu") => one = Some(Hierarchy::One(place)),
                "cgroup2" => two = Some(Hierarchy::Two(place)),
                _ => {}
            }
        }
        one.or(two)
    }

    fn place(&self) -> &Path {
        match self {
            Hierarchy::One(place) | Hierarchy::Two(place) => place,
        }
    }

    /// Lets groups in `folder` share out processors.
    fn enable(&self, folder: &Path) -> io::Result<()> {
        match self {
            Hierarchy::One(_) => Ok(()),
            Hierarchy::Two(_) => fs::write(folder.join("cgroup.subtree_control"), "+cpu"),
        }
    }

    /// Lets a group use `quota` microseconds of processor time in each `period`, in microseconds.
    fn limit(&self, group: &Path, quota: u64, period: u64) -> io::Result<()> {
        match self {
            Hierarchy::One(_) => {
                fs::write(group.join("cpu.cfs_period_us"), period.to_string())?;
                fs::write(group.join("cpu.cfs_quota_us"), quota.to_string())
            }
            Hierarchy::Two(_) => fs::write(group.join("cpu.max"), format!("{quota} {period}")),
        }
    }
}

/// The groups of a run. They are removed when this is dropped: no process may be left in them.
#[derive(Debug)]
pub struct Groups {
    folder: PathBuf,
    hosts: Vec<PathBuf>,
}

impl Groups {
    /// Makes a group for each host. `cores` limits each host in its own time, which is `factor` times slower.
    ///
    /// # Errors
    /// When the machine has no control groups for processors, or does not let us make any.
    pub fn make(hosts: usize, cores: Option<f64>, factor: u32) -> Result<Self, Error> {
        let mounts = fs::read_to_string(MOUNTS).context(|| format!("cannot read {MOUNTS}"))?;
        let hierarchy = Hierarchy::find(&mounts).ok_or_else(|| {
            Error::Machine(
                "no control groups for processors are mounted (cgroup, cgroup2): mount them, as by `mount -t cgroup2 \
                 none /sys/fs/cgroup`"
                    .into(),
            )
        })?;
        Groups::make_in(&hierarchy, hosts, cores, factor)
    }

    fn make_in(hierarchy: &Hierarchy, hosts: usize, cores: Option<f64>, factor: u32) -> Result<Self, Error> {
        remove_leftovers(hierarchy.place());
        let folder = hierarchy.place().join(format!("{PREFIX}{}", std::process::id()));
        let what = || format!("cannot make the control group {}", folder.display());
        fs::create_dir(&folder).context(what)?;
        let mut groups = Groups { folder: folder.clone(), hosts: vec![] };
        hierarchy.enable(hierarchy.place()).context(what)?;
        hierarchy.enable(&folder).context(what)?;
        for host in 0..hosts {
            let group = folder.join(format!("host{host}"));
            fs::create_dir(&group).context(what)?;
            groups.hosts.push(group.clone());
            if let Some(cores) = cores {
                let (quota, period) = quota(cores, factor);
                let what = || {
                    format!(
                        "hosts.cores = {cores}: cannot limit the control group {} (CONFIG_CFS_BANDWIDTH; see \
                         `firstlight doctor`); take the key out, or use another machine",
                        group.display()
                    )
                };
                hierarchy.limit(&group, quota, period).context(what)?;
            }
        }
        Ok(groups)
    }

    /// The files to which processes write their numbers.
    pub fn files(&self) -> impl Iterator<Item = PathBuf> {
        self.hosts.iter().map(|group| group.join("cgroup.procs"))
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for _ in 0..PATIENCE {
            if remove(&self.folder) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The microseconds of processor time that a host with `cores` cores gets in `period` microseconds of the machine's
/// time.
fn quota(cores: f64, factor: u32) -> (u64, u64) {
    let share = cores / f64::from(factor);
    let period = ((LEAST_QUOTA as f64 / share).ceil() as u64).clamp(PERIOD, LONGEST_PERIOD);
    (((period as f64 * share).round() as u64).max(LEAST_QUOTA), period)
}

/// Removes a group and those in it; false while a process is in one.
fn remove(folder: &Path) -> bool {
    let inner = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    for group in inner.filter(|path| path.is_dir()) {
        // A group that is not empty is tried again.
        let _ = fs::remove_dir(group);
    }
    match fs::remove_dir(folder) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Removes the groups of runs whose engine is gone.
fn remove_leftovers(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|rest| rest.parse::<u32>().ok());
        if owner.is_some_and(|process| !is_engine(process)) {
            remove(&entry.path());
        }
    }
}

/// Whether a process is one of this program's.
fn is_engine(process: u32) -> bool {
    let name = |process: &str| fs::read_to_string(format!("/proc/{process}/comm")).ok();
    let theirs = name(&process.to_string());
    theirs.is_some() && theirs == name("self")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_version_is_found() {
        let one = "proc /proc proc rw 0 0\ncgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n";
        let two = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";
        assert_eq!(Hierarchy::find(one), Some(Hierarchy::One("/sys/fs/cgroup/cpu,cpuacct".into())));
        assert_eq!(Hierarchy::find(two), Some(Hierarchy::Two("/sys/fs/cgroup".into())));
        let both = format!("{two}cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n{one}");
        assert_eq!(Hierarchy::find(&both), Hierarchy::find(one), "processors are with version 1 there");
        assert_eq!(Hierarchy::find("proc /proc proc rw 0 0\n"), None);
    }

    #[test]
    fn a_hosts_cores_are_shared_out_in_its_own_time() {
        assert_eq!(quota(1.0, 20), (1_000, 20_000));
        assert_eq!(quota(2.0, 1), (20_000, 10_000));
        assert_eq!(quota(0.5, 100), (1_000, 200_000));
        let (quota, period) = quota(0.001, 1000);
        assert_eq!((quota, period), (1_000, 1_000_000), "the kernel gives no less");
    }

    /// A folder stands in for a hierarchy of version 2, whose files the kernel makes.
    #[test]
    fn groups_of_version_2_are_given_processors_and_limits() {
        let place = tempfile::tempdir().unwrap();
        let groups = Groups::make_in(&Hierarchy::Two(place.path().into()), 2, Some(1.0), 20).unwrap();
        let read = |file: PathBuf| fs::read_to_string(file).unwrap();
        for shared in [place.path(), &groups.folder] {
            assert_eq!(read(shared.join("cgroup.subtree_control")), "+cpu", "{}", shared.display());
        }
        for host in ["host0", "host1"] {
            assert_eq!(read(groups.folder.join(host).join("cpu.max")), "1000 20000");
        }
        assert!(groups.files().all(|file| file.starts_with(&groups.folder) && file.ends_with("cgroup.procs")));
        fs::remove_dir_all(&groups.folder).unwrap(); // the kernel's own files go with their group
    }

    /// The directory in which this machine permits groups.
    #[test]
    fn groups_hold_processes_and_go_with_the_run() {
        let Ok(groups) = Groups::make(2, Some(1.0), 20) else { return };
        let folder = groups.folder.clone();
        let files: Vec<PathBuf> = groups.files().collect();
        let command = format!("echo $$ > {} && cat /proc/self/cgroup", files[1].display());
        let output = std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains(&format!("/{PREFIX}{}/host1", std::process::id())), "{said}");
        drop(groups);
        assert!(!folder.exists());
    }

    #[test]
    fn groups_of_an_engine_that_is_gone_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let of = |process: u32| place.path().join(format!("{PREFIX}{process}"));
        // A number that no process has, and this one's.
        for process in [u32::MAX, std::process::id()] {
            fs::create_dir_all(of(process).join("host0")).unwrap();
        }
        fs::create_dir_all(place.path().join("firstlight-by-hand")).unwrap();
        remove_leftovers(place.path());
        assert_eq!((of(u32::MAX).exists(), of(std::process::id()).exists()), (false, true));
        assert!(place.path().join("firstlight-by-hand").exists());
    }
}
