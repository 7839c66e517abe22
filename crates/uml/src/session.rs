//! The life of one run: what the guest program tells, and what the kernel asks for.

use crate::aside::aside;
use crate::directory::{Directory, Failure, Order, Progress};
use crate::driver::{Cookie, Device, Driver, Kernel};
use crate::flow_state;
use firstlight_formats::capture::CaptureWriter;
use firstlight_lab::spec::HostKind;
use firstlight_lab::{Counters, Ended, LabError, LinuxCounters, Outcome, Sample, build, start_capture};
use firstlight_linux::{Malformed, Message, Moment, Plan, TcpInfo};
use firstlight_net::HostId;
use firstlight_units::Span;
use std::net::SocketAddrV4;

/// A message that the guest should not have sent, or that came to nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("the run has begun already")]
    Started,
    #[error("the run is over already")]
    Over,
    #[error("flow {0} is none of the Linux hosts'")]
    Flow(u32),
    #[error("flow {0} has no message on its way")]
    Message(u32),
    #[error("there is no program {0}")]
    Program(u32),
    #[error("flow {0} tells its state in too few bytes")]
    Info(u32),
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl Refused {
    /// For the guest's write.
    pub fn errno(&self) -> i32 {
        match self {
            Refused::Started => libc::EALREADY,
            Refused::Over => libc::ESHUTDOWN,
            Refused::Failed(failure) => failure.errno(),
            _ => libc::EINVAL,
        }
    }
}

/// One run.
pub(crate) struct Session<K> {
    directory: Directory,
    order: Order,
    driver: Driver<K>,
    capture: Option<CaptureWriter>,
    linux: LinuxCounters,
    /// What each flow had received at the end of the warm-up and of each interval of `measure.throughput` since.
    received: Vec<Vec<u64>>,
    progress: Progress,
    /// The result is written, or will not be.
    over: bool,
}

impl<K: Kernel + Send> Session<K> {
    /// Reads a run's directory and builds its experiment.
    pub fn open(directory: Directory, kernel: K) -> Result<Box<Self>, Failure> {
        // Boxed: it would not fit on the kernel's stack, on its way from function to function.
        aside(|| Self::build(directory, kernel).map(Box::new)).map_err(Failure::Aside)?
    }

    fn build(directory: Directory, kernel: K) -> Result<Self, Failure> {
        let progress = Progress::new(&directory);
        let order = directory.read()?;
        let mut world = build(&order.spec)?;
        if order.spec.measure.capture && order.capture.is_none() {
            return Err(LabError::NoCaptureFile.into());
        }
        let path = order.capture.as_deref();
        let capture = path.map(|path| start_capture(&order.spec, &mut world, path)).transpose()?;
        let driver = Driver::new(world, kernel, &devices(&order.plan), order.spec.warmup, order.spec.duration);
        let linux = LinuxCounters { ended: vec![None; order.plan.programs.len()], ..LinuxCounters::default() };
        Ok(Session { directory, order, driver, capture, linux, received: vec![], progress, over: false })
    }

    /// How many devices the kernel is to make.
    pub fn devices(&self) -> u32 {
        self.order.plan.hosts.len() as u32
    }

    #[inline]
    pub fn send(&mut self, device: u32, cookie: Cookie, frame: &[u8], length: usize, now: u64) -> bool {
        self.driver.send(device, cookie, frame, length, now)
    }

    #[inline]
    pub fn next(&self) -> Option<u64> {
        self.driver.next()
    }

    #[inline]
    pub fn run(&mut self, now: u64) {
        self.driver.run(now);
        if self.progress.count() {
            self.progress.note(self.driver.elapsed(now));
        }
    }

    /// A message of the guest program.
    pub fn control(&mut self, message: &[u8], now: u64) -> Result<(), Refused> {
        let message = Message::decode(message)?;
        self.driver.run(now);
        match message {
            Message::Start => self.start(now),
            _ if self.over => Err(Refused::Over),
            Message::FlowComplete { flow } => self.flow_complete(flow),
            Message::MessageComplete { flow } => self.message_complete(flow),
            Message::FlowState { flow, sender, moment, info } => self.flow_state(flow, sender, moment, info),
            Message::ProgramEnded { program, code } => self.program_ended(program, code),
            Message::Failed(why) => self.failed(&String::from_utf8_lossy(why)),
            Message::Interval => {
                self.interval();
                Ok(())
            }
            Message::Finish => self.finish(now),
        }
    }

    /// Whether the kernel is to tell what programs write.
    pub fn hears_writes(&self) -> bool {
        self.driver.world().fabric().hears_writes()
    }

    /// A program begins to write to its connection (sender, receiver), or ends having written fewer bytes.
    pub fn wrote(&mut self, ends: [SocketAddrV4; 2], sequence: u32, bytes: i64) {
        self.driver.wrote(ends, sequence, bytes);
    }

    /// A program's connection is over.
    pub fn closed(&mut self, ends: [SocketAddrV4; 2]) {
        self.driver.closed(ends);
    }

    fn start(&mut self, now: u64) -> Result<(), Refused> {
        if !self.driver.start(now) {
            return Err(Refused::Started);
        }
        self.progress.note(0);
        Ok(())
    }

    /// The flow's index, if it is one of the Linux hosts'.
    fn flow(&self, flow: u32) -> Result<usize, Refused> {
        let known = self.order.spec.flows.get(flow as usize).filter(|flow| flow.hosts == HostKind::Linux);
        known.map(|_| flow as usize).ok_or(Refused::Flow(flow))
    }

    fn flow_complete(&mut self, flow: u32) -> Result<(), Refused> {
        let flow = self.flow(flow)?;
        if self.driver.is_running() {
            self.driver.world_mut().complete(flow);
        }
        Ok(())
    }

    fn message_complete(&mut self, flow: u32) -> Result<(), Refused> {
        let index = self.flow(flow)?;
        if self.driver.is_running() && !self.driver.world_mut().complete_message(index) {
            return Err(Refused::Message(flow));
        }
        Ok(())
    }

    fn flow_state(&mut self, flow: u32, sender: bool, moment: Moment, info: &[u8]) -> Result<(), Refused> {
        let index = self.flow(flow)?;
        let info = TcpInfo::parse(info).ok_or(Refused::Info(flow))?;
        if moment == Moment::Series {
            if sender {
                self.linux.samples.push(Sample { at: self.driver.world().now(), flow, info });
            } else {
                flow_state::set_receiver(self.driver.world_mut().told_mut(index), &info);
            }
            return Ok(());
        }
        let state = self.driver.world_mut().told_mut(index);
        if sender {
            flow_state::set_sender(state, &info);
        } else {
            flow_state::set_receiver(state, &info);
        }
        let state = *state;
        if moment == Moment::Warm
            && let Some(warm) = self.driver.warm_mut()
        {
            warm[index].set_state(&state);
        }
        Ok(())
    }

    /// An interval of `measure.throughput` is over, or the run within one: that nothing came in what is left of it is
    /// known. The guest's clocks may tell of the last one or not; one that the run's time cuts short does not count.
    fn interval(&mut self) {
        let spec = &self.order.spec;
        let end = |every: Span| spec.warmup + every * self.received.len() as u64;
        if spec.measure.throughput.is_some_and(|every| end(every) <= spec.duration) {
            self.received.push(self.driver.world().bytes_received());
        }
    }

    fn program_ended(&mut self, program: u32, code: i32) -> Result<(), Refused> {
        let at = self.driver.world().now();
        let running = self.driver.is_running();
        let ended = self.linux.ended.get_mut(program as usize).ok_or(Refused::Program(program))?;
        // At the end of the run those that still run are ended: that is not their own doing.
        if running {
            *ended = Some(Ended { at, code });
        }
        Ok(())
    }

    fn failed(&mut self, why: &str) -> Result<(), Refused> {
        self.over = true;
        self.directory.write_failure(why)?;
        Err(Failure::Guest(why.into()).into())
    }

    fn finish(&mut self, now: u64) -> Result<(), Refused> {
        self.driver.finish(now);
        self.over = true;
        self.interval();
        self.progress.note(self.driver.elapsed(now));
        let concluded = aside(|| self.conclude()).map_err(Failure::Aside).and_then(|done| done);
        concluded.inspect_err(|failure| {
            // The run ends without a result; that this cannot be written either is told by the kernel's log.
            _ = self.directory.write_failure(&failure.to_string());
        })?;
        Ok(())
    }

    /// From counts to the result's file.
    fn conclude(&mut self) -> Result<(), Failure> {
        if let Some(writer) = self.capture.take() {
            drop(self.driver.world_mut().fabric_mut().take_capture());
            writer.finish().map_err(LabError::from)?;
        }
        let Order { spec, overrides, .. } = &self.order;
        self.linux.frames = self.driver.frames();
        let warm = self.driver.warm().unwrap_or_default().to_vec();
        let linux = Some(std::mem::take(&mut self.linux));
        let received = std::mem::take(&mut self.received);
        let counters = Counters { linux, received, ..Counters::of(spec, self.driver.world(), warm)? };
        self.directory.write_outcome(&Outcome::of(spec, overrides, &counters))
    }
}

fn devices(plan: &Plan) -> Vec<Device> {
    plan.hosts.iter().map(|host| Device { host: HostId(host.host), address: host.address }).collect()
}
