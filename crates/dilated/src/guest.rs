//! The program that runs the hosts, in namespaces of its own.
//!
//! The program is the first process of a process namespace: when it ends for any reason, the kernel ends all processes
//! that it started. The program ends with this process. Network namespaces and devices have no name outside and go with
//! it.

use crate::error::Error;
use firstlight_linux::Context;
use firstlight_uml::RunDirectory;
use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, send, socketpair};
use nix::unistd::{getegid, geteuid};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Bytes of the longest message.
const LONGEST: usize = 1 << 16;
/// The process namespace of this process.
const PROCESSES: &str = "/proc/self/ns/pid";
/// The program's environment: the run's directory, and the number of the socket to the engine.
const RUN: &str = "FIRSTLIGHT_RUN";
const ENGINE: &str = "FIRSTLIGHT_ENGINE";
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Gives this process a network namespace, and a user namespace unless it is root's. It must have one thread.
pub fn enter_namespaces() -> Result<(), Error> {
    let (user, group) = (geteuid(), getegid());
    if !user.is_root() {
        let denied = || "only root may make network namespaces here (unprivileged user namespaces are off)".into();
        unshare(CloneFlags::CLONE_NEWUSER).context(denied)?;
        let map = |name: &str, text: String| fs::write(format!("/proc/self/{name}"), text).context(denied);
        map("setgroups", "deny".into())?;
        map("uid_map", format!("0 {user} 1"))?;
        map("gid_map", format!("0 {group} 1"))?;
    }
    Ok(unshare(CloneFlags::CLONE_NEWNET).context(|| "cannot make a network namespace".into())?)
}

/// The running program, and the way to it.
pub struct Guest {
    child: Child,
    socket: OwnedFd,
}

impl Guest {
    /// Starts the program. Its output goes to `guest.log` in the run's directory.
    pub fn start(program: &Path, directory: &RunDirectory) -> Result<Self, Error> {
        let what = || format!("cannot start {}", program.display());
        let log = File::create(directory.path("guest.log")).context(what)?;
        let pair = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::empty());
        let (socket, theirs) = pair.context(what)?;
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_else(|| PATH.into()))
            .env("HOME", std::env::var_os("HOME").unwrap_or_else(|| "/".into()))
            .env(RUN, directory.path(""))
            .env(ENGINE, theirs.as_raw_fd().to_string())
            .stdin(Stdio::null())
            .stdout(log.try_clone().context(what)?)
            .stderr(log)
            .process_group(0);
        let own = socket.as_raw_fd();
        // SAFETY: between fork and exec there are only system calls, and no memory is taken.
        #[allow(unsafe_code)]
        unsafe {
            command.pre_exec(move || settle(own));
        }
        let home = File::open(PROCESSES).context(|| format!("cannot open {PROCESSES}"))?;
        unshare(CloneFlags::CLONE_NEWPID).context(|| "cannot make a process namespace".into())?;
        let child = command.spawn().context(what);
        // Processes that this process starts from now on are in its own namespace again: otherwise it could not start
        // threads.
        setns(&home, CloneFlags::CLONE_NEWPID).context(|| "cannot go back to the own process namespace".into())?;
        Ok(Guest { child: child?, socket })
    }

    /// The socket, to be waited for.
    pub fn socket(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.socket.as_fd()
    }

    /// The next message; none when the program has gone.
    pub fn receive(&self, room: &mut Vec<u8>) -> Result<bool, Error> {
        room.resize(LONGEST, 0);
        let length = match recv(self.socket.as_raw_fd(), room, MsgFlags::empty()) {
            Err(Errno::ECONNRESET) => Ok(0),
            other => other,
        };
        room.truncate(length.context(|| "cannot read the guest's message".into())?);
        Ok(!room.is_empty())
    }

    /// Answers the guest's message: 0, or an errno value.
    pub fn answer(&self, error: i32) {
        // A program that has ended needs no answer.
        let _ = send(self.socket.as_raw_fd(), &error.to_ne_bytes(), MsgFlags::MSG_NOSIGNAL);
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes the new process end when the engine ends, and gives it mounts of its own.
fn settle(engine: i32) -> io::Result<()> {
    prctl::set_pdeathsig(Some(Signal::SIGKILL))?;
    nix::unistd::close(engine)?;
    // The engine waits for signals; programs are ended by them.
    SigSet::empty().thread_set_mask()?;
    unshare(CloneFlags::CLONE_NEWNS)?;
    Ok(())
}
