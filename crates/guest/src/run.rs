//! The run: all is made ready, the engine's time begins, and what was asked for takes its course.

use crate::clock::{self, Alarm, Watch};
use crate::engine::Engine;
use crate::failure::{Context, Failure};
use crate::flows::{self, Flow};
use crate::hosts::Host;
use crate::post::Post;
use crate::programs::Programs;
use firstlight_linux::{Message, Moment, Plan};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread;

/// What happens in a run.
enum Event {
    FlowComplete,
    /// All of them.
    MessagesComplete,
    ProgramEnded,
    TimeIsUp,
    Failed(Failure),
}

/// Where threads tell what happens.
#[derive(Clone)]
pub struct Events(Sender<Event>);

impl Events {
    fn tell(&self, event: Event) {
        // Nobody listens any more when the run has ended.
        let _ = self.0.send(event);
    }

    pub fn flow_complete(&self) {
        self.tell(Event::FlowComplete);
    }

    pub fn messages_complete(&self) {
        self.tell(Event::MessagesComplete);
    }

    pub fn program_ended(&self, server: bool) {
        if !server {
            self.tell(Event::ProgramEnded);
        }
    }

    pub fn failed(&self, failure: Failure) {
        self.tell(Event::Failed(failure));
    }
}

/// Carries the plan out.
pub fn run(plan: &Plan, hosts: Vec<Host>, directory: &Path, engine: &Engine) -> Result<(), Failure> {
    let flows: Arc<[Flow]> = flows::prepare(&plan.flows, &hosts, &plan.hosts)?.into();
    let programs = Programs::new(directory)?;
    let (sender, receiver) = channel();
    let events = Events(sender);

    let (post, inboxes) = Post::new(plan, engine, &events)?;
    let post = Arc::new(post);
    let clocks = 2 + [plan.tcp_info, plan.throughput_ps].iter().flatten().count();
    let waiting = flows::threads(flows.len()) + plan.programs.len() + clocks;
    let start = Arc::new(Barrier::new(waiting + 1));
    flows::start(&flows, &start, &events, engine, &post, inboxes)?;
    programs.start(&plan.programs, &Arc::new(hosts), &start, &events, engine)?;
    if let Some(every) = plan.tcp_info {
        let (flows, engine, duration) = (Arc::clone(&flows), engine.clone(), plan.duration);
        watch(&start, &events, move || sample(every, duration, &flows, &engine))?;
    }
    if let Some(every) = plan.throughput_ps {
        let (flows, engine, warmup, duration) = (Arc::clone(&flows), engine.clone(), plan.warmup, plan.duration);
        watch(&start, &events, move || count(every, warmup, duration, &flows, &engine))?;
    }
    let (told, own, warmup, duration) = (Arc::clone(&flows), engine.clone(), plan.warmup, plan.duration);
    let ending = events.clone();
    watch(&start, &events, move || keep_time(warmup, duration, &told, &own, &ending))?;

    let own = Arc::clone(&post);
    watch(&start, &events, move || own.keep_time())?;

    clock::settle();
    engine.tell(Message::Start)?;
    post.open()?;
    start.wait();
    wait_for_end(plan, &receiver)?;
    flows.iter().try_for_each(|flow| flow.tell_both(Moment::End, engine))?;
    engine.tell(Message::Finish)?;
    programs.end();
    Ok(())
}

/// Returns when all that was to be done is done, or the time is up.
fn wait_for_end(plan: &Plan, events: &Receiver<Event>) -> Result<(), Failure> {
    let mut awaited = plan.flows.len() + plan.programs.iter().filter(|program| !program.server).count();
    let mut messages = plan.messages.is_empty();
    loop {
        match events.recv().context(|| "every thread has ended before the run".into())? {
            Event::FlowComplete | Event::ProgramEnded => awaited -= 1,
            Event::MessagesComplete => messages = true,
            Event::TimeIsUp => return Ok(()),
            Event::Failed(failure) => return Err(failure),
        }
        if awaited == 0 && messages && plan.ends_early {
            return Ok(());
        }
    }
}

/// Starts a thread that watches the others; it waits for `start`.
fn watch(
    start: &Arc<Barrier>,
    events: &Events,
    work: impl FnOnce() -> Result<(), Failure> + Send + 'static,
) -> Result<(), Failure> {
    let (start, events) = (Arc::clone(start), events.clone());
    let body = move || {
        start.wait();
        if let Err(failure) = work() {
            events.failed(failure);
        }
    };
    thread::Builder::new().spawn(body).map(drop).context(|| "cannot start a thread".into())
}

/// Tells the state of all flows at the end of the warm-up, and that the time is up.
fn keep_time(warmup: u64, duration: u64, flows: &[Flow], engine: &Engine, events: &Events) -> Result<(), Failure> {
    clock::sleep(warmup);
    flows.iter().try_for_each(|flow| flow.tell_both(Moment::Warm, engine))?;
    clock::sleep(duration - warmup);
    events.tell(Event::TimeIsUp);
    Ok(())
}

/// Tells the state of all senders this often.
fn sample(every: u64, duration: u64, flows: &[Flow], engine: &Engine) -> Result<(), Failure> {
    for _ in 0..duration / every {
        clock::sleep(every);
        flows.iter().try_for_each(|flow| flow.tell_sender(Moment::Series, engine))?;
    }
    Ok(())
}

/// Tells what all receivers have at the end of the warm-up and after each whole interval since, in the nanosecond in which
/// it ends. This takes no virtual time: the run is the same without.
fn count(every_ps: u64, warmup: u64, duration: u64, flows: &[Flow], engine: &Engine) -> Result<(), Failure> {
    let ends = (0..).map(|interval: u64| warmup + (interval * every_ps).div_ceil(1000));
    let (watch, alarm) = (Watch::new()?, Alarm::new()?);
    watch.start()?;
    for end in ends.take_while(|end| *end <= duration) {
        let now = watch.elapsed()?;
        if end > now {
            alarm.set(Some(end - now))?;
            alarm.wait()?;
        }
        flows.iter().try_for_each(|flow| flow.tell_receiver(Moment::Series, engine))?;
        engine.tell(Message::Interval)?;
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
            size: Some(1),
            start: Some(0),
        };
        let program = |server| ProgramPlan { name: "p".into(), on: 0, command: "true".into(), start: 0, server };
        Plan {
            version: String::new(),
            hosts: vec![],
            modules: vec![],
            parameters: vec![],
            flows: vec![flow],
            messages: vec![],
            programs: vec![program(false), program(true)],
            warmup: 0,
            duration: 1,
            ends_early,
            tcp_info: None,
            throughput_ps: None,
        }
    }

    /// How many events are left when the run ends.
    fn left(ends_early: bool, happens: impl Fn(&Events)) -> Result<usize, Failure> {
        let (sender, receiver) = channel();
        let events = Events(sender);
        happens(&events);
        events.tell(Event::TimeIsUp);
        wait_for_end(&plan(ends_early), &receiver).map(|()| receiver.try_iter().count())
    }

    #[test]
    fn a_run_ends_with_all_that_it_waits_for() {
        let all = |events: &Events| {
            events.program_ended(true);
            events.program_ended(false);
            events.flow_complete();
        };
        assert_eq!(left(true, all), Ok(1), "not for the server, nor for the time");
        assert_eq!(left(false, all), Ok(0), "when the time is up");
        assert_eq!(left(true, |events| events.flow_complete()), Ok(0), "a program runs on");
    }

    #[test]
    fn a_run_waits_for_its_messages() {
        let message = firstlight_linux::MessagePlan { flow: None, bytes: 0, start_ps: 0, delay_ps: 5, after: vec![] };
        let plan = Plan { messages: vec![message], programs: vec![], ..plan(true) };
        let left = |happens: fn(&Events)| {
            let (sender, receiver) = channel();
            happens(&Events(sender));
            wait_for_end(&plan, &receiver).is_ok()
        };
        assert!(!left(Events::flow_complete) && !left(Events::messages_complete), "nothing more comes");
        let both = |events: &Events| {
            events.messages_complete();
            events.flow_complete();
        };
        assert!(left(both));
    }

    #[test]
    fn a_failure_ends_it() {
        let failure = Failure::new("no");
        assert_eq!(left(true, |events| events.failed(failure.clone())), Err(failure.clone()));
    }
}
