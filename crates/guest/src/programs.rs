//! Programs: each runs in its host's namespace and writes its output to files of the run's directory.

use crate::clock;
use crate::engine_device::EngineDevice;
use crate::failure::{Context, GuestFailure};
use crate::hosts::GuestHost;
use crate::mounts::RunPlaces;
use crate::run::RunEvents;
use crate::user::User;
use firstlight_linux::{GuestMessage, ProgramPlan};
use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::stat::futimens;
use nix::sys::time::TimeSpec;
use nix::unistd::Pid;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Barrier, Mutex, OnceLock, PoisonError};
use std::thread;

/// The `PATH` of programs, unless the kernel's command line has one.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Script of a shell that joins the control group whose file is the first argument, and then runs the second one.
const JOIN_GROUP: &str = r#"echo $$ > "$1" && exec /bin/sh -c "$2""#;
/// Stack of a thread that starts a program and waits for it, in bytes.
const STACK: usize = 128 * 1024;
/// Nanoseconds between two checks whether programs have ended after SIGTERM.
const ENDING_STEP: u64 = 1_000_000;
/// Checks before programs are killed.
const ENDING_STEPS: u64 = 200;
/// How many of a failed program's last lines its error quotes.
const LAST_LINES: usize = 5;

/// The programs of a run.
#[derive(Clone)]
pub struct Programs {
    /// The folder of outputs, in the run's directory.
    folder: PathBuf,
    /// The folder of programs' working directories: the same folder, or one in the kernel's memory.
    places: PathBuf,
    /// The experiment's folder, and a link to it on the machine.
    experiment: PathBuf,
    origin: PathBuf,
    /// Variables of programs' environment besides the usual ones; known when the run begins.
    environment: Arc<OnceLock<Vec<(String, String)>>>,
    /// The process groups of programs that run.
    running: Arc<Mutex<Vec<Pid>>>,
}

impl Programs {
    pub fn new(places: &RunPlaces) -> Result<Self, GuestFailure> {
        let folder = places.directory.join("programs");
        fs::create_dir_all(&folder).context(|| format!("cannot make {}", folder.display()))?;
        let RunPlaces { programs: places, experiment, origin, .. } = places.clone();
        Ok(Programs { folder, places, experiment, origin, environment: Arc::default(), running: Arc::default() })
    }

    /// Sets the variables of programs that start from now on. They are set once.
    pub fn set_environment(&self, environment: Vec<(String, String)>) {
        // A second time changes nothing.
        let _ = self.environment.set(environment);
    }

    /// Starts a thread for each program; the threads wait for `start`.
    pub fn start(
        &self,
        plans: &[ProgramPlan],
        hosts: &Arc<Vec<GuestHost>>,
        start: &Arc<Barrier>,
        events: &RunEvents,
        engine: &EngineDevice,
    ) -> Result<(), GuestFailure> {
        for (index, plan) in plans.iter().enumerate() {
            let user = plan.user.as_deref().map(User::find).transpose().context(|| format!("program {}", plan.name))?;
            let (programs, plan, hosts) = (self.clone(), plan.clone(), Arc::clone(hosts));
            let (start, events, engine) = (Arc::clone(start), events.clone(), engine.clone());
            let body = move || {
                start.wait();
                clock::sleep(plan.start);
                match programs.carry_out(index as u32, &plan, &hosts[plan.on], user, &engine) {
                    Ok(()) => events.program_ended(index),
                    Err(failure) => events.failed(failure),
                }
            };
            thread::Builder::new()
                .stack_size(STACK)
                .spawn(body)
                .context(|| "cannot start a program's thread".into())?;
        }
        Ok(())
    }

    /// Runs a program to its end.
    fn carry_out(
        &self,
        index: u32,
        plan: &ProgramPlan,
        host: &GuestHost,
        user: Option<User>,
        engine: &EngineDevice,
    ) -> Result<(), GuestFailure> {
        host.enter()?;
        let mut child =
            self.spawn(plan, host, user).context(|| format!("cannot start program {} on {}", plan.name, host.name))?;
        let group = Pid::from_raw(child.id() as i32);
        self.with_running(|running| running.push(group));
        let status = child.wait().context(|| format!("cannot wait for program {}", plan.name))?;
        let ended_by_us = !self.with_running(|running| remove(running, group));
        if ended_by_us {
            return Ok(());
        }
        let code = code(status);
        let unknown = matches!(code, 126 | 127);
        if unknown || (code != 0 && !plan.server) {
            return Err(self.failure(plan, &host.name, status));
        }
        engine.report(GuestMessage::ProgramEnded { program: index, code })
    }

    fn spawn(&self, plan: &ProgramPlan, host: &GuestHost, user: Option<User>) -> std::io::Result<Child> {
        let place = self.places.join(&plan.name);
        fs::create_dir_all(&place)?;
        if let Some(user) = &user {
            user.own(&place)?;
        }
        let inherited = |name: &str, otherwise: &str| std::env::var_os(name).unwrap_or_else(|| otherwise.into());
        let mut command = Command::new("/bin/sh");
        match &host.group {
            Some(group) => command.args(["-c", JOIN_GROUP, "sh"]).arg(group).arg(&plan.command),
            None => command.args(["-c", &plan.command]),
        };
        command
            .env_clear()
            .env("PATH", inherited("PATH", PATH))
            .env("HOME", inherited("HOME", "/"))
            .env("LANG", "C.UTF-8")
            .env("FIRSTLIGHT_HOST", &host.name)
            .env("FIRSTLIGHT_EXPERIMENT", &self.experiment)
            .env("FIRSTLIGHT_ORIGIN", &self.origin)
            .envs(self.environment.get().into_iter().flatten().map(|(name, value)| (name, value)))
            .current_dir(place)
            .stdin(Stdio::null())
            .stdout(self.output(plan, "out")?)
            .stderr(self.output(plan, "err")?)
            .process_group(0);
        if let Some(user) = user {
            command.env("HOME", &user.home).env("USER", &user.name).env("LOGNAME", &user.name);
            // SAFETY: between fork and exec there are only system calls, and no memory is taken.
            #[allow(unsafe_code)]
            unsafe {
                command.pre_exec(move || user.become_user());
            }
        }
        command.spawn()
    }

    /// A new file for an output of a program. Its times are those of the hosts' clock, reading which takes time.
    fn output(&self, plan: &ProgramPlan, end: &str) -> std::io::Result<File> {
        let file = File::create(self.folder.join(format!("{}.{end}", plan.name)))?;
        futimens(&file, &TimeSpec::UTIME_NOW, &TimeSpec::UTIME_NOW)?;
        Ok(file)
    }

    /// Copies the files that `chosen` accepts from all working folders to the run's directory, where they outlast the
    /// kernel.
    pub fn keep(&self, chosen: impl Fn(&Path) -> bool) -> Result<(), GuestFailure> {
        if self.places == self.folder {
            return Ok(());
        }
        copy(&self.places, &self.folder, &chosen).context(|| "cannot keep what programs have written".into())
    }

    /// The error for a program that ended as it should not have.
    fn failure(&self, plan: &ProgramPlan, host: &str, status: ExitStatus) -> GuestFailure {
        let what = match code(status) {
            127 => "did not start: the command does not exist".into(),
            126 => "did not start: the command may not be executed".into(),
            code if code > 128 && status.code().is_none() => format!("was ended by signal {}", code - 128),
            code => {
                format!("ended with exit code {code} instead of 0 (set server = true if it need not end by itself)")
            }
        };
        let path = self.folder.join(format!("{}.err", plan.name));
        let said = fs::read(&path).map(|bytes| last_lines(&String::from_utf8_lossy(&bytes))).unwrap_or_default();
        let said = if said.is_empty() {
            "it wrote nothing to its error output".into()
        } else {
            format!("the end of its error output:\n{said}")
        };
        GuestFailure::new(format!("program {} on {host} ({}) {what}; {said}", plan.name, plan.command))
    }

    /// Ends all programs that still run: by SIGTERM, and after a fifth of a second by SIGKILL.
    pub fn end(&self) {
        let mut ending: Vec<Pid> = self.with_running(std::mem::take);
        signal(&ending, Signal::SIGTERM);
        for _ in 0..ENDING_STEPS {
            ending.retain(|group| killpg(*group, None) != Err(Errno::ESRCH));
            if ending.is_empty() {
                break;
            }
            clock::sleep(ENDING_STEP);
        }
        signal(&ending, Signal::SIGKILL);
        self.remove_empty_places();
    }

    fn with_running<T>(&self, change: impl FnOnce(&mut Vec<Pid>) -> T) -> T {
        change(&mut self.running.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Removes the working folders that are empty.
    fn remove_empty_places(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for folder in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            // A folder with files stays.
            let _ = fs::remove_dir(folder.path());
        }
    }
}

fn signal(groups: &[Pid], signal: Signal) {
    for group in groups {
        // A program that has ended meanwhile needs no signal.
        let _ = killpg(*group, signal);
    }
}

fn remove(running: &mut Vec<Pid>, group: Pid) -> bool {
    let found = running.iter().position(|known| *known == group);
    found.map(|index| running.remove(index)).is_some()
}

/// The exit code as shells count it: 128 and the signal's number for a program that a signal ended.
fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

/// Copies files and folders with such; nothing else, such as sockets.
fn copy(from: &Path, to: &Path, chosen: &impl Fn(&Path) -> bool) -> std::io::Result<()> {
    for entry in fs::read_dir(from)? {
        let (entry, kind) = entry.and_then(|entry| entry.file_type().map(|kind| (entry, kind)))?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&path, &target, chosen)?;
        } else if chosen(&path) && path.is_file() {
            fs::create_dir_all(to)?;
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error for a program that ends with this status, after it has written `errors`.
    fn error_for(wait_status: i32, errors: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let programs = Programs::new(&RunPlaces::within(folder.path())).unwrap();
        let plan =
            ProgramPlan { name: "p".into(), on: 0, command: "run me".into(), start: 0, server: false, user: None };
        fs::write(folder.path().join("programs/p.err"), errors).unwrap();
        programs.failure(&plan, "host3", ExitStatus::from_raw(wait_status)).to_string()
    }

    #[test]
    fn errors_of_failed_programs() {
        let exit = |code: i32| code << 8;
        assert_eq!(
            error_for(exit(3), "one\ntwo\n3\n4\n5\n6\n"),
            "program p on host3 (run me) ended with exit code 3 instead of 0 (set server = true if it need not end by \
             itself); the end of its error output:\ntwo\n3\n4\n5\n6"
        );
        assert_eq!(
            error_for(exit(127), "sh: run: not found"),
            "program p on host3 (run me) did not start: the command does not exist; the end of its error output:\n\
             sh: run: not found"
        );
        assert_eq!(
            error_for(exit(126), ""),
            "program p on host3 (run me) did not start: the command may not be executed; it wrote nothing to its error \
             output"
        );
        assert_eq!(
            error_for(9, ""),
            "program p on host3 (run me) was ended by signal 9; it wrote nothing to its error output"
        );
    }

    #[test]
    fn exit_codes_are_those_of_shells() {
        assert_eq!([0, 3 << 8, 15].map(|status| code(ExitStatus::from_raw(status))), [0, 3, 143]);
    }

    fn host() -> GuestHost {
        let [namespace, called] = ["net", "uts"].map(|kind| File::open(format!("/proc/self/ns/{kind}")).unwrap());
        GuestHost { name: "host3".into(), group: None, namespace, called }
    }

    /// A program is in its host's control group before it does anything, and has the variables that were set.
    #[test]
    fn programs_have_their_group_and_their_environment() {
        let folder = tempfile::tempdir().unwrap();
        let programs = Programs::new(&RunPlaces::within(folder.path())).unwrap();
        programs.set_environment(vec![("LIBVT_TDF".into(), "20".into())]);
        let group = folder.path().join("group");
        let plan = ProgramPlan {
            name: "p".into(),
            on: 0,
            command: format!("cat {}; echo $$ $LIBVT_TDF", group.display()),
            start: 0,
            server: false,
            user: None,
        };
        let host = GuestHost { group: Some(group), ..host() };
        assert!(programs.spawn(&plan, &host, None).unwrap().wait().unwrap().success());
        let said = fs::read_to_string(folder.path().join("programs/p.out")).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[1], format!("{} 20", lines[0]));
    }

    /// One program ends on SIGTERM, the other ignores it; both are ended.
    #[test]
    fn end_ends_all_programs() {
        let folder = tempfile::tempdir().unwrap();
        let programs = Programs::new(&RunPlaces::within(folder.path())).unwrap();
        let started = |command: &str| {
            let plan = ProgramPlan {
                name: command.len().to_string(),
                on: 0,
                command: command.into(),
                start: 0,
                server: true,
                user: None,
            };
            let child = programs.spawn(&plan, &host(), None).unwrap();
            programs.with_running(|running| running.push(Pid::from_raw(child.id() as i32)));
            child
        };
        let children = [started("exec sleep 1000"), started("trap '' TERM; while :; do sleep 0.01; done")];
        let waiting = children.map(|mut child| thread::spawn(move || child.wait().unwrap().signal()));
        thread::sleep(std::time::Duration::from_millis(50));
        programs.end();
        assert_eq!(waiting.map(|thread| thread.join().unwrap()), [Some(15), Some(9)]);
        assert_eq!(fs::read_dir(folder.path().join("programs")).unwrap().count(), 4, "two files of each");
    }
}
