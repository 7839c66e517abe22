//! The run: everything is prepared, then the engine's time begins, then flows and programs run until the run's end.

use crate::clock::{self, Alarm, Stopwatch};
use crate::engine_device::EngineDevice;
use crate::failure::{Context, GuestFailure};
use crate::flows::{self, GuestFlow};
use crate::hosts::GuestHost;
use crate::message_relay::MessageRelay;
use crate::mounts::RunPlaces;
use crate::probes;
use crate::programs::Programs;
use firstlight_linux::{Dilation, GuestMessage, Plan, ReportTime};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread;

/// An event that can end the run.
enum RunEvent {
    FlowComplete,
    /// All messages of all flows are complete.
    MessagesComplete,
    /// The index of the program in the plan.
    ProgramEnded(usize),
    TimeIsUp,
    Failed(GuestFailure),
}

/// The channel on which threads report events.
#[derive(Clone)]
pub struct RunEvents(Sender<RunEvent>);

impl RunEvents {
    fn send(&self, event: RunEvent) {
        // Events after the run's end have no receiver.
        let _ = self.0.send(event);
    }

    pub fn flow_complete(&self) {
        self.send(RunEvent::FlowComplete);
    }

    pub fn messages_complete(&self) {
        self.send(RunEvent::MessagesComplete);
    }

    pub fn program_ended(&self, index: usize) {
        self.send(RunEvent::ProgramEnded(index));
    }

    pub fn failed(&self, failure: GuestFailure) {
        self.send(RunEvent::Failed(failure));
    }
}

/// Carries out the plan, which may be this machine's part of a larger one.
pub fn run(
    plan: &Plan,
    is_part: bool,
    hosts: Vec<GuestHost>,
    dilation: Option<Dilation>,
    places: &RunPlaces,
    engine: &EngineDevice,
) -> Result<(), GuestFailure> {
    let flows: Arc<[GuestFlow]> = flows::prepare(&plan.flows, &hosts, &plan.hosts, dilation.is_some())?.into();
    let probes = probes::prepare(&plan.probes, &hosts, &plan.hosts)?;
    let programs = Programs::new(places)?;
    let (sender, receiver) = channel();
    let events = RunEvents(sender);

    let (relay, inboxes) = MessageRelay::new(plan, engine, &events)?;
    let relay = Arc::new(relay);
    let clocks = 2 + [plan.tcp_info, plan.throughput_ps].iter().flatten().count();
    let waiting = flows::threads(flows.len()) + probes.threads() + plan.programs.len() + clocks;
    let start = Arc::new(Barrier::new(waiting + 1));
    flows::start(&flows, &start, &events, engine, &relay, inboxes)?;
    for sender in probes.senders {
        spawn(&start, &events, move || sender.send())?;
    }
    for receiver in probes.receivers {
        spawn(&start, &events, move || receiver.receive())?;
    }
    programs.start(&plan.programs, &Arc::new(hosts), &start, &events, engine)?;
    if let Some(every) = plan.tcp_info {
        let (flows, engine, duration) = (Arc::clone(&flows), engine.clone(), plan.duration);
        spawn(&start, &events, move || sample(every, duration, &flows, &engine))?;
    }
    if let Some(every) = plan.throughput_ps {
        let (flows, engine, warmup, duration) = (Arc::clone(&flows), engine.clone(), plan.warmup, plan.duration);
        spawn(&start, &events, move || report_received(every, warmup, duration, &flows, &engine))?;
    }
    let (reported, own, warmup, duration) = (Arc::clone(&flows), engine.clone(), plan.warmup, plan.duration);
    let ending = events.clone();
    spawn(&start, &events, move || time_run(warmup, duration, &reported, &own, &ending))?;

    let own = Arc::clone(&relay);
    spawn(&start, &events, move || own.run())?;

    if dilation.is_none() {
        clock::settle()?;
    }
    engine.report(GuestMessage::Start)?;
    if let Some(dilation) = dilation {
        programs.set_environment([dilation.environment, vec![clock::start_of_virtual_time()?]].concat());
    }
    relay.start()?;
    start.wait();
    if let Err(failure) = wait_for_end(plan, is_part, &receiver) {
        // What programs have written may say why. Another failure would only hide this one.
        let _ = programs.keep(|_| true);
        return Err(failure);
    }
    flows.iter().try_for_each(|flow| flow.report_both(ReportTime::RunEnd, engine))?;
    engine.report(GuestMessage::Finish)?;
    programs.end();
    programs.keep(is_table)
}

/// Whether a file of a program's working directory is a table of the result.
fn is_table(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "csv")
}

/// Returns when all flows, messages and programs are complete and the plan ends early, or when the time is up. All
/// programs but servers must have ended by then. A part of a plan may have nothing to wait for: the engine waits for
/// the other parts.
fn wait_for_end(plan: &Plan, is_part: bool, events: &Receiver<RunEvent>) -> Result<(), GuestFailure> {
    let mut flows = plan.flows.len();
    let not_server = |index: &usize| !plan.programs[*index].server;
    let mut programs: BTreeSet<usize> = (0..plan.programs.len()).filter(not_server).collect();
    let mut messages = plan.messages.is_empty();
    if is_part && flows == 0 && programs.is_empty() && messages && plan.ends_early {
        return Ok(());
    }
    loop {
        match events.recv().context(|| "all threads ended before the run".into())? {
            RunEvent::FlowComplete => flows -= 1,
            // The end of a server changes nothing.
            RunEvent::ProgramEnded(index) => _ = programs.remove(&index),
            RunEvent::MessagesComplete => messages = true,
            RunEvent::TimeIsUp => return programs.first().map_or(Ok(()), |index| Err(unended(plan, *index))),
            RunEvent::Failed(failure) => return Err(failure),
        }
        if flows == 0 && programs.is_empty() && messages && plan.ends_early {
            return Ok(());
        }
    }
}

/// The error for a program that still runs at the end of the run.
fn unended(plan: &Plan, index: usize) -> GuestFailure {
    let program = &plan.programs[index];
    let host = plan.hosts.get(program.on).and_then(|host| host.names.first()).map_or("its host", String::as_str);
    GuestFailure::new(format!(
        "program {} on {host} ({}) had not ended at the end of the run: set server = true if it need not end by \
         itself, else a longer duration",
        program.name, program.command
    ))
}

/// Starts a thread that waits for `start` and then does `work`.
fn spawn(
    start: &Arc<Barrier>,
    events: &RunEvents,
    work: impl FnOnce() -> Result<(), GuestFailure> + Send + 'static,
) -> Result<(), GuestFailure> {
    let (start, events) = (Arc::clone(start), events.clone());
    let body = move || {
        start.wait();
        if let Err(failure) = work() {
            events.failed(failure);
        }
    };
    thread::Builder::new().spawn(body).map(drop).context(|| "cannot start a thread".into())
}

/// Reports the state of all flows at the end of the warm-up, and when the time is up.
fn time_run(
    warmup: u64,
    duration: u64,
    flows: &[GuestFlow],
    engine: &EngineDevice,
    events: &RunEvents,
) -> Result<(), GuestFailure> {
    clock::sleep(warmup);
    flows.iter().try_for_each(|flow| flow.report_both(ReportTime::WarmupEnd, engine))?;
    clock::sleep(duration - warmup);
    events.send(RunEvent::TimeIsUp);
    Ok(())
}

/// Reports the state of all senders every `every` nanoseconds.
fn sample(every: u64, duration: u64, flows: &[GuestFlow], engine: &EngineDevice) -> Result<(), GuestFailure> {
    for _ in 0..duration / every {
        clock::sleep(every);
        flows.iter().try_for_each(|flow| flow.report_sender(ReportTime::Sample, engine))?;
    }
    Ok(())
}

/// Reports the bytes of all receivers at the end of the warm-up and after each whole interval since then, in the
/// nanosecond in which the interval ends. Reporting takes no virtual time: the run is the same without it.
fn report_received(
    every_ps: u64,
    warmup: u64,
    duration: u64,
    flows: &[GuestFlow],
    engine: &EngineDevice,
) -> Result<(), GuestFailure> {
    let ends = (0..).map(|interval: u64| warmup + (interval * every_ps).div_ceil(1000));
    let (stopwatch, alarm) = (Stopwatch::new()?, Alarm::new()?);
    stopwatch.start()?;
    for end in ends.take_while(|end| *end <= duration) {
        let now = stopwatch.elapsed()?;
        if end > now {
            alarm.set(Some(end - now))?;
            alarm.wait()?;
        }
        flows.iter().try_for_each(|flow| flow.report_receiver(ReportTime::Sample, engine))?;
        engine.report(GuestMessage::Interval)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstlight_linux::{FlowPlan, ProgramPlan};

    fn plan(ends_early: bool) -> Plan {
        let flow = FlowPlan {
            flow: 0,
            from: 0,
            to: 1,
            from_port: 1,
            to_port: 2,
            cc: "reno".into(),
            class: 0,
            size: Some(1),
            start: Some(0),
            stop: None,
            nagle: false,
            interactive: false,
            reads: None,
        };
        let program = |server| {
            let (name, command) = ("p".into(), "true".into());
            ProgramPlan { name, on: 0, command, start: 0, server, user: None }
        };
        Plan {
            version: String::new(),
            hosts: vec![],
            names: vec![],
            ipv6: false,
            modules: vec![],
            memory: None,
            writable: vec![],
            parameters: vec![],
            flows: vec![flow],
            probes: vec![],
            messages: vec![],
            programs: vec![program(false), program(true)],
            warmup: 0,
            duration: 1,
            ends_early,
            tcp_info: None,
            throughput_ps: None,
        }
    }

    /// How many events the run leaves unread when it ends; `happens` sends the events.
    fn left(ends_early: bool, happens: impl Fn(&RunEvents)) -> Result<usize, GuestFailure> {
        let (sender, receiver) = channel();
        let events = RunEvents(sender);
        happens(&events);
        events.send(RunEvent::TimeIsUp);
        wait_for_end(&plan(ends_early), false, &receiver).map(|()| receiver.try_iter().count())
    }

    #[test]
    fn a_run_ends_when_all_it_waits_for_is_complete() {
        let all = |events: &RunEvents| {
            events.program_ended(1);
            events.program_ended(0);
            events.flow_complete();
        };
        assert_eq!(left(true, all), Ok(1), "the run waits neither for the server nor for the time");
        assert_eq!(left(false, all), Ok(0), "the run ends when the time is up");
    }

    #[test]
    fn a_program_that_still_runs_at_the_end_is_an_error() {
        let error = left(true, |events| events.flow_complete()).unwrap_err().to_string();
        assert!(error.starts_with("program p on its host (true) had not ended at the end of the run: set"), "{error}");
        assert_eq!(left(true, |events| events.program_ended(0)), Ok(0), "a flow need not be complete");
    }

    #[test]
    fn a_run_waits_for_its_messages() {
        let message = firstlight_linux::MessagePlan {
            flow: None,
            bytes: 0,
            start_ps: 0,
            delay_ps: 5,
            after: vec![],
            enough: None,
        };
        let plan = Plan { messages: vec![message], programs: vec![], ..plan(true) };
        let left = |happens: fn(&RunEvents)| {
            let (sender, receiver) = channel();
            happens(&RunEvents(sender));
            wait_for_end(&plan, false, &receiver).is_ok()
        };
        assert!(!left(RunEvents::flow_complete) && !left(RunEvents::messages_complete), "the other is missing");
        let both = |events: &RunEvents| {
            events.messages_complete();
            events.flow_complete();
        };
        assert!(left(both));
    }

    #[test]
    fn a_part_with_servers_alone_is_done_at_once() {
        let mut plan = Plan { flows: vec![], ..plan(true) };
        plan.programs.remove(0);
        let left = |is_part| {
            let (sender, receiver) = channel();
            RunEvents(sender).send(RunEvent::TimeIsUp);
            wait_for_end(&plan, is_part, &receiver).map(|()| receiver.try_iter().count())
        };
        assert_eq!([left(true), left(false)], [Ok(1), Ok(0)], "the whole of a plan takes its time");
    }

    #[test]
    fn a_failure_ends_the_run() {
        let failure = GuestFailure::new("no");
        assert_eq!(left(true, |events| events.failed(failure.clone())), Err(failure.clone()));
    }
}
