//! The first program of a kernel in virtual time: it sets up the hosts, sends and receives the flows, runs the
//! programs. It does the same in namespaces of the machine's own kernel, where hosts run in dilated time.
//!
//! The plan in the run's directory (`FIRSTLIGHT_RUN`) says what to do; the program reports to the engine through a
//! device or a socket. It never reads the clock, which stands still in virtual time while it computes: it sleeps and
//! waits.

mod clock;
mod engine_device;
mod failure;
mod flows;
mod hosts;
mod machine;
mod memory;
mod message_relay;
mod modules;
mod mounts;
mod netlink;
mod power;
mod probes;
mod programs;
mod run;
mod socket;
mod user;

use engine_device::EngineDevice;
use failure::{Context, GuestFailure};
use firstlight_linux::Plan;
use firstlight_version::version;
use machine::MachineKind;
use std::path::{Path, PathBuf};

/// Name of the plan in the run's directory.
const PLAN: &str = "plan.json";
/// Name of the file with this machine's part of the plan, where hosts are on several machines.
const PART: &str = "part.json";

fn main() {
    if std::process::id() != 1 {
        eprintln!(
            "firstlight-guest is the first program of a kernel or of its own namespaces: `firstlight run` starts it \
             there"
        );
        std::process::exit(2);
    }
    let (machine, engine) = MachineKind::find();
    machine.end_on_panic(&engine);
    if let Err(failure) = work(machine, &engine) {
        engine.report_failure(&failure);
    }
    machine.end();
}

fn work(machine: MachineKind, engine: &EngineDevice) -> Result<(), GuestFailure> {
    let places = machine.mount(&environment("FIRSTLIGHT_RUN")?)?;
    let GuestPart { plan, is_part } = part(&places.directory)?;
    let dilation = machine.prepare(&plan, &places)?;
    mounts::names(&plan.names, plan.ipv6)?;
    let hosts = hosts::set_up(&plan.hosts, plan.ipv6, dilation.as_ref())?;
    let done = run::run(&plan, is_part, hosts, dilation, &places, engine);
    if machine == MachineKind::Own {
        // The log of the machine's kernel has other machines' processes too.
        memory::note_killed(&places.directory);
    }
    done
}

/// The plan that this program carries out, and whether it is a part of a larger one.
struct GuestPart {
    plan: Plan,
    is_part: bool,
}

/// Reads this machine's part of a plan whose hosts are on several, else the whole plan.
fn part(directory: &Path) -> Result<GuestPart, GuestFailure> {
    let path = directory.join(PART);
    let is_part = path.exists();
    let plan = plan(&if is_part { path } else { directory.join(PLAN) })?;
    Ok(GuestPart { plan, is_part })
}

fn environment(name: &str) -> Result<PathBuf, GuestFailure> {
    let value = std::env::var_os(name).ok_or_else(|| {
        GuestFailure::new(format!("the environment lacks {name}: start this program by `firstlight run`"))
    })?;
    Ok(value.into())
}

fn plan(path: &Path) -> Result<Plan, GuestFailure> {
    let text = std::fs::read_to_string(path).context(|| format!("cannot read {}", path.display()))?;
    check_version(&text)?;
    serde_json::from_str(&text).context(|| format!("{} is not a plan of this version", path.display()))
}

/// Checks the version before the rest of the plan: the plan of another version may have another form.
fn check_version(text: &str) -> Result<(), GuestFailure> {
    #[derive(serde::Deserialize)]
    struct Versioned {
        version: String,
    }
    let plan: Versioned = serde_json::from_str(text).context(|| "the plan is not JSON with a version".into())?;
    let (own, theirs) = (version(), plan.version);
    if theirs == own {
        return Ok(());
    }
    Err(GuestFailure::new(format!(
        "the plan is of version {theirs}, the program inside the kernel of version {own}: build both from one version"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_of_another_version_is_refused() {
        let text = |version: &str| format!("{{\"version\": \"{version}\", \"of another form\": 1}}");
        assert!(check_version(&text(&version())).is_ok());
        let error = check_version(&text("9.9.9")).unwrap_err().to_string();
        assert!(
            error.starts_with("the plan is of version 9.9.9, the program inside the kernel of version 0."),
            "{error}"
        );
    }
}
