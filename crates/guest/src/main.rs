//! The first program of a kernel in virtual time: it sets the hosts up, carries the traffic and runs the programs.
//!
//! All that it is to do stands in the plan of the run's directory (`FIRSTLIGHT_RUN`); what happens it tells the engine
//! through a device. It never reads the clock, which stands still while it computes: it sleeps and waits.

mod clock;
mod engine;
mod failure;
mod flows;
mod hosts;
mod modules;
mod mounts;
mod netlink;
mod post;
mod power;
mod programs;
mod run;
mod socket;

use engine::Engine;
use failure::{Context, Failure};
use firstlight_linux::Plan;
use firstlight_version::version;
use std::path::{Path, PathBuf};

/// What is to be done, in the run's directory.
const PLAN: &str = "plan.json";

fn main() {
    if std::process::id() != 1 {
        eprintln!(
            "firstlight-guest is the first program of a kernel in virtual time: `firstlight run` starts it there"
        );
        std::process::exit(2);
    }
    mounts::devices();
    let engine = Engine::open();
    power::off_on_panic(&engine);
    if let Err(failure) = work(&engine) {
        engine.tell_failure(&failure);
    }
    power::off();
}

fn work(engine: &Engine) -> Result<(), Failure> {
    mounts::system()?;
    let directory = environment("FIRSTLIGHT_RUN")?;
    mounts::uncover(&directory, PLAN)?;
    let plan = plan(&directory)?;
    clock::tighten()?;
    hosts::raise_limits(&plan)?;
    modules::load(&plan)?;
    modules::allow_controls()?;
    mounts::names(&plan.hosts)?;
    let hosts = hosts::set_up(&plan.hosts)?;
    run::run(&plan, hosts, &directory, engine)
}

fn environment(name: &str) -> Result<PathBuf, Failure> {
    let value =
        std::env::var_os(name).ok_or_else(|| Failure::new(format!("the kernel's command line has no {name}=")))?;
    Ok(value.into())
}

fn plan(directory: &Path) -> Result<Plan, Failure> {
    let path = directory.join(PLAN);
    let text = std::fs::read_to_string(&path).context(|| format!("cannot read {}", path.display()))?;
    check_version(&text)?;
    serde_json::from_str(&text).context(|| format!("{} is no plan", path.display()))
}

/// Looks at the version before all else: another one's plan may be of another form.
fn check_version(text: &str) -> Result<(), Failure> {
    #[derive(serde::Deserialize)]
    struct Versioned {
        version: String,
    }
    let plan: Versioned = serde_json::from_str(text).context(|| "the plan is not JSON that has a version".into())?;
    let (own, theirs) = (version(), plan.version);
    if theirs == own {
        return Ok(());
    }
    Err(Failure::new(format!(
        "the plan is of version {theirs}, the program inside the kernel of {own}: build both anew from one version"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_versions_plan_is_refused() {
        let text = |version: &str| format!("{{\"version\": \"{version}\", \"of another form\": 1}}");
        assert!(check_version(&text(&version())).is_ok());
        let told = check_version(&text("9.9.9")).unwrap_err().to_string();
        assert!(told.starts_with("the plan is of version 9.9.9, the program inside the kernel of 0."), "{told}");
    }
}
