//! The kernel that hosts run on: their own in virtual time, or the machine's in dilated time.
//!
//! On the machine's kernel this program is the first one of process and mount namespaces that the engine made for it
//! (`FIRSTLIGHT_ENGINE` names the socket to the engine). All that it starts ends with it.

use crate::engine_device::EngineDevice;
use crate::failure::{Context, GuestFailure};
use crate::mounts::{self, RunPlaces};
use crate::{hosts, modules, power};
use firstlight_linux::{DILATION, Dilation, Plan};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::Once;

/// The variable that names the socket to the engine.
const SOCKET: &str = "FIRSTLIGHT_ENGINE";

/// The kernel that the hosts run on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MachineKind {
    /// A kernel of their own, in virtual time.
    Own,
    /// The machine's, in dilated time.
    Shared,
}

impl MachineKind {
    /// Finds out which kernel this is, and opens the way to the engine.
    pub fn find() -> (MachineKind, EngineDevice) {
        let number = std::env::var(SOCKET).ok().and_then(|text| text.parse().ok());
        let Some(number) = number else {
            mounts::devices();
            return (MachineKind::Own, EngineDevice::open());
        };
        // SAFETY: the engine, which sets the variable, hands the descriptor over; it is used here alone.
        #[allow(unsafe_code)]
        let socket = unsafe { OwnedFd::from_raw_fd(number) };
        // Programs have no part in it.
        let _ = fcntl(&socket, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC));
        (MachineKind::Shared, EngineDevice::at(socket))
    }

    /// Mounts the file systems that programs expect. Returns the folder of the run's files from then on.
    pub fn mount(self, directory: &Path) -> Result<RunPlaces, GuestFailure> {
        match self {
            MachineKind::Own => mounts::system(directory),
            MachineKind::Shared => mounts::apart(directory),
        }
    }

    /// Makes the kernel ready for the plan; what is different on the machine's own is read from the run's directory.
    pub fn prepare(self, plan: &Plan, places: &RunPlaces) -> Result<Option<Dilation>, GuestFailure> {
        let directory = &places.directory;
        if self == MachineKind::Own {
            plan.writable.iter().try_for_each(|directory| mounts::machine_directory(directory, directory))?;
            mounts::experiment(places)?;
            hosts::raise_limits(plan)?;
            modules::load(plan, directory)?;
            modules::allow_controls(plan)?;
            return Ok(None);
        }
        hosts::raise_open_files(plan)?;
        let path = directory.join(DILATION);
        let text = std::fs::read_to_string(&path).context(|| format!("cannot read {}", path.display()))?;
        let dilation: Dilation = serde_json::from_str(&text).context(|| format!("{} is wrong", path.display()))?;
        stay_on(&dilation.processors)?;
        Ok(Some(dilation))
    }

    /// Ends this program, and with it all that it started.
    pub fn end(self) -> ! {
        match self {
            MachineKind::Own => power::off(),
            MachineKind::Shared => std::process::exit(0),
        }
    }

    /// Makes a panic of this program end the run like a failure.
    pub fn end_on_panic(self, engine: &EngineDevice) {
        let engine = engine.clone();
        let once = Once::new();
        std::panic::set_hook(Box::new(move |panic| {
            // One thread reports; the others wait here for the end.
            once.call_once(|| {
                let defect = format!("a defect of the program that runs the hosts, please report it: {panic}");
                engine.report_failure(&GuestFailure::new(defect));
                self.end();
            });
        }));
    }
}

/// Keeps this program, and all that it starts, on these processors.
fn stay_on(processors: &[usize]) -> Result<(), GuestFailure> {
    let mut set = CpuSet::new();
    processors.iter().try_for_each(|processor| set.set(*processor)).context(|| "a processor's number".into())?;
    sched_setaffinity(Pid::from_raw(0), &set).context(|| format!("cannot run on the processors {processors:?}"))
}
