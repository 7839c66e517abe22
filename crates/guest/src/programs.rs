//! Programs: each runs in its host's namespace, its output in files of the run's directory.

use crate::clock;
use crate::engine::Engine;
use crate::failure::{Context, Failure};
use crate::hosts::Host;
use crate::run::Events;
use firstlight_linux::{Message, ProgramPlan};
use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread;

/// Where programs find others, unless the kernel's command line has a `PATH=`.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Memory of a thread that starts a program and waits for it.
const STACK: usize = 128 * 1024;
/// Programs that are asked to end look after this many nanoseconds whether they have.
const ENDING_STEP: u64 = 1_000_000;
/// How often that is before they are killed.
const ENDING_STEPS: u64 = 200;
/// A failed program's last lines that are told.
const LAST_LINES: usize = 5;

/// The programs of a run.
#[derive(Clone)]
pub struct Programs {
    /// `programs` in the run's directory.
    folder: PathBuf,
    /// The process groups of those that run.
    running: Arc<Mutex<Vec<Pid>>>,
}

impl Programs {
    pub fn new(directory: &Path) -> Result<Self, Failure> {
        let folder = directory.join("programs");
        fs::create_dir_all(&folder).context(|| format!("cannot make {}", folder.display()))?;
        Ok(Programs { folder, running: Arc::default() })
    }

    /// Starts a thread for each program; they wait for `start`.
    pub fn start(
        &self,
        plans: &[ProgramPlan],
        hosts: &Arc<Vec<Host>>,
        start: &Arc<Barrier>,
        events: &Events,
        engine: &Engine,
    ) -> Result<(), Failure> {
        for (index, plan) in plans.iter().enumerate() {
            let (programs, plan, hosts) = (self.clone(), plan.clone(), Arc::clone(hosts));
            let (start, events, engine) = (Arc::clone(start), events.clone(), engine.clone());
            let body = move || {
                start.wait();
                clock::sleep(plan.start);
                match programs.carry_out(index as u32, &plan, &hosts[plan.on], &engine) {
                    Ok(()) => events.program_ended(plan.server),
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
    fn carry_out(&self, index: u32, plan: &ProgramPlan, host: &Host, engine: &Engine) -> Result<(), Failure> {
        host.enter()?;
        let mut child =
            self.spawn(plan, &host.name).context(|| format!("cannot start program {} on {}", plan.name, host.name))?;
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
        engine.tell(Message::ProgramEnded { program: index, code })
    }

    fn spawn(&self, plan: &ProgramPlan, host: &str) -> std::io::Result<Child> {
        let output = |end: &str| File::create(self.folder.join(format!("{}.{end}", plan.name)));
        let place = self.folder.join(&plan.name);
        fs::create_dir_all(&place)?;
        let inherited = |name: &str, otherwise: &str| std::env::var_os(name).unwrap_or_else(|| otherwise.into());
        Command::new("/bin/sh")
            .args(["-c", &plan.command])
            .env_clear()
            .env("PATH", inherited("PATH", PATH))
            .env("HOME", inherited("HOME", "/"))
            .env("LANG", "C.UTF-8")
            .env("FIRSTLIGHT_HOST", host)
            .current_dir(place)
            .stdin(Stdio::null())
            .stdout(output("out")?)
            .stderr(output("err")?)
            .process_group(0)
            .spawn()
    }

    /// What a program's end says that should not have been.
    fn failure(&self, plan: &ProgramPlan, host: &str, status: ExitStatus) -> Failure {
        let what = match code(status) {
            127 => "found no such command".into(),
            126 => "may not execute the command".into(),
            code if code > 128 && status.code().is_none() => format!("was ended by signal {}", code - 128),
            code => format!("ended with exit code {code}, where 0 is right (or server = true, if it is to run on)"),
        };
        let path = self.folder.join(format!("{}.err", plan.name));
        let said = fs::read(&path).map(|bytes| last_lines(&String::from_utf8_lossy(&bytes))).unwrap_or_default();
        let said = if said.is_empty() { "it wrote no error".into() } else { format!("its last errors:\n{said}") };
        Failure::new(format!("program {} on {host} ({}) {what}; {said}", plan.name, plan.command))
    }

    /// Ends all that still run: asks first, and gives them a little time.
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

    /// Folders where no program left anything.
    fn remove_empty_places(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for folder in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            // One that is not empty stays.
            let _ = fs::remove_dir(folder.path());
        }
    }
}

fn signal(groups: &[Pid], signal: Signal) {
    for group in groups {
        // One that ended meanwhile needs none.
        let _ = killpg(*group, signal);
    }
}

fn remove(running: &mut Vec<Pid>, group: Pid) -> bool {
    let found = running.iter().position(|known| *known == group);
    found.map(|index| running.remove(index)).is_some()
}

/// The exit code, as shells count it.
fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told of a program that ends so, having written these errors.
    fn told(wait_status: i32, errors: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let programs = Programs::new(folder.path()).unwrap();
        let plan = ProgramPlan { name: "p".into(), on: 0, command: "run me".into(), start: 0, server: false };
        fs::write(folder.path().join("programs/p.err"), errors).unwrap();
        programs.failure(&plan, "host3", ExitStatus::from_raw(wait_status)).to_string()
    }

    #[test]
    fn what_is_said_of_a_failed_program() {
        let exit = |code: i32| code << 8;
        assert_eq!(
            told(exit(3), "one\ntwo\n3\n4\n5\n6\n"),
            "program p on host3 (run me) ended with exit code 3, where 0 is right (or server = true, if it is to run on); \
             its last errors:\ntwo\n3\n4\n5\n6"
        );
        assert_eq!(
            told(exit(127), "sh: run: not found"),
            "program p on host3 (run me) found no such command; its last errors:\nsh: run: not found"
        );
        assert_eq!(told(exit(126), ""), "program p on host3 (run me) may not execute the command; it wrote no error");
        assert_eq!(told(9, ""), "program p on host3 (run me) was ended by signal 9; it wrote no error");
    }

    #[test]
    fn exit_codes_as_shells_count_them() {
        assert_eq!([0, 3 << 8, 15].map(|status| code(ExitStatus::from_raw(status))), [0, 3, 143]);
    }

    /// One ends when it is asked, one does not; both are gone in the end.
    #[test]
    fn all_that_run_are_ended() {
        let folder = tempfile::tempdir().unwrap();
        let programs = Programs::new(folder.path()).unwrap();
        let started = |command: &str| {
            let plan =
                ProgramPlan { name: command.len().to_string(), on: 0, command: command.into(), start: 0, server: true };
            let child = programs.spawn(&plan, "host3").unwrap();
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
