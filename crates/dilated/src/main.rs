//! Hosts in dilated time: the machine's own kernel and real programs, on a fabric slower than the clock.
//!
//! `firstlight run` starts this program with a run's directory, the same as that of a kernel in virtual time. It holds
//! the experiment and the plan, and in the end `outcome.json` or `failure.json`. The program makes namespaces and
//! devices, starts the program that sets the hosts up ([`guest`]), and follows the machine's clock ([`pace`]).
//!
//! Hosts may be on other machines too ([`machines`]), each of which runs this program with the file `join.json` in the
//! run's directory ([`joined`]).

mod adu;
mod clock;
mod error;
mod fidelity;
mod groups;
mod guest;
mod interfaces;
mod joined;
mod machines;
mod marks;
mod pace;
mod peer;
mod processors;
mod seal;
mod settings;

use adu::Adu;
use error::Error;
use firstlight_lab::fidelity::Bounds;
use firstlight_linux::{Context, DILATION, DilatedHost, Dilation, HostPlan};
use firstlight_net::HostId;
use firstlight_uml::{RunDirectory, Session};
use groups::Groups;
use guest::Guest;
use interfaces::HostInterfaces;
use machines::Machines;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use pace::RealTimePace;
use processors::ProcessorShares;
use settings::Settings;
use std::fs;
use std::process::ExitCode;

/// The table of what programs write, in the run's directory.
const TABLE: &str = "adu";

fn main() -> ExitCode {
    let Some(directory) = std::env::args_os().nth(1) else {
        eprintln!("firstlight-dilated is started by `firstlight run`, with the directory of a run");
        return ExitCode::from(2);
    };
    let directory = RunDirectory::new(directory);
    report_panics(&directory);
    match run(&directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            // There may already be a file that says more.
            if !directory.path("failure.json").exists() {
                let _ = directory.write_failure(&error.to_string());
            }
            ExitCode::FAILURE
        }
    }
}

/// Makes a panic a failure of the run like any other. All is cleaned up as the stack unwinds.
fn report_panics(directory: &RunDirectory) {
    let directory = directory.clone();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let _ = directory.write_failure(&format!("a defect of the engine, please report it: {panic}"));
        before(panic);
    }));
}

fn run(directory: &RunDirectory) -> Result<(), Error> {
    let signals = catch_signals()?;
    if directory.path(joined::JOIN).exists() {
        return joined::run(directory, &signals);
    }
    let settings = Settings::read(directory)?;
    let processors = ProcessorShares::find()?;
    let mut interfaces = HostInterfaces::new(&processors.hosts);
    if let Some(joined) = settings.joined.clone() {
        interfaces.machines = Machines::open(joined)?;
    }
    guest::enter_namespaces()?;
    let mut session = Session::open(directory.clone(), interfaces)?;
    let (hosts, bounds) = (session.plan().hosts.clone(), Bounds::of(session.spec()));
    let mtu = hosts.iter().map(|host| host.mtu).max().unwrap_or(0);
    session.kernel().bounds = bounds;
    session.kernel().open(hosts.len(), mtu)?;
    let factor = session.spec().tables.time_scale;
    let cores = session.spec().linux.as_ref().and_then(|linux| linux.cores);
    let rates: Vec<u64> = hosts.iter().map(|host| rate(&session, host)).collect();
    let machines = &mut session.kernel().machines;
    machines.describe(&rates, cores, mtu)?;
    let here: Vec<u64> =
        rates.iter().enumerate().filter(|(host, _)| machines.place(*host).is_none()).map(|(_, rate)| *rate).collect();
    let groups = Groups::make(here.len(), cores, factor)?;
    let adu = session.needs_writes().then(|| Adu::make(&directory.path(TABLE))).transpose()?;
    write(directory, &dilation(&session, directory, &settings, &processors, &groups, &here))?;
    let guest = Guest::start(&settings.guest, directory)?;
    processors::stay_on(processors.engine)?;
    processors::go_first();
    RealTimePace::new(directory.clone(), session, guest, adu, &signals)?.run()
}

/// From now on those signals that end a run are waited for.
fn catch_signals() -> Result<SignalFd, Error> {
    let what = || "cannot wait for signals".into();
    let ends = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]);
    ends.thread_block().context(what)?;
    Ok(SignalFd::with_flags(&ends, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).context(what)?)
}

/// Bytes that the link of a host takes in a second of the machine's time.
fn rate(session: &Session<HostInterfaces>, host: &HostPlan) -> u64 {
    let spec = session.spec();
    spec.network.host_rate(HostId(host.host)).as_bps() / 8 / u64::from(spec.tables.time_scale)
}

/// The guest program's settings besides the plan of this machine's hosts.
fn dilation(
    session: &Session<HostInterfaces>,
    directory: &RunDirectory,
    settings: &Settings,
    processors: &ProcessorShares,
    groups: &Groups,
    rates: &[u64],
) -> Dilation {
    let factor = u64::from(session.spec().tables.time_scale);
    let mut libraries = settings.libvt.display().to_string();
    let mut environment = vec![("LIBVT_TDF", factor.to_string())];
    if session.needs_writes() {
        libraries = format!("{libraries}:{}", settings.libadu.display());
        environment.push(("LIBADU", directory.path(TABLE).display().to_string()));
    }
    environment.push(("LD_PRELOAD", libraries));
    let host = |(rate, group): (&u64, _)| DilatedHost { rate: *rate, group: Some(group) };
    Dilation {
        processors: processors.hosts.clone(),
        environment: environment.into_iter().map(|(name, value)| (name.into(), value)).collect(),
        hosts: rates.iter().zip(groups.files()).map(host).collect(),
    }
}

fn write(directory: &RunDirectory, dilation: &Dilation) -> Result<(), Error> {
    let path = directory.path(DILATION);
    let text = serde_json::to_string(dilation).expect("JSON can represent it");
    Ok(fs::write(&path, text).context(|| format!("cannot write {}", path.display()))?)
}
