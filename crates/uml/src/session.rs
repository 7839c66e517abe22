//! One run, from its directory to its result: messages of the guest program, and calls of the kernel.

use crate::directory::{ProgressFile, RunDirectory, RunOrder, SessionError};
use crate::driver::{Cookie, Device, KernelCalls, KernelDriver};
use crate::flow_state;
use crate::large_stack::on_large_stack;
use firstlight_formats::capture::CaptureWriter;
use firstlight_lab::spec::{HostKind, Linux, Network};
use firstlight_lab::{
    Counters, LabError, LinuxCounters, Outcome, ProgramEnd, Spec, TcpInfoSample, Timeline, build, finish_timeline,
    start_capture,
};
use firstlight_linux::{GuestMessage, MalformedMessage, Plan, ReportTime, TcpInfo};
use firstlight_net::HostId;
use firstlight_sim::FlowProgress;
use firstlight_units::Span;
use std::net::SocketAddrV4;

/// Why a message of the guest program is refused.
#[derive(Debug, thiserror::Error)]
pub enum RefusedMessage {
    /// The bytes are not a message.
    #[error(transparent)]
    Malformed(#[from] MalformedMessage),
    /// The run starts a second time.
    #[error("the run has begun already")]
    Started,
    /// The message comes after the run's end.
    #[error("the run is over already")]
    Over,
    /// The flow is not one of Linux hosts.
    #[error("flow {0} is not a flow of Linux hosts")]
    Flow(u32),
    /// No message of the flow was sent.
    #[error("flow {0} has no message in flight")]
    Message(u32),
    /// The plan has no such program.
    #[error("there is no program {0}")]
    Program(u32),
    /// The TCP_INFO is too short.
    #[error("the state of flow {0} has too few bytes")]
    Info(u32),
    /// The run failed.
    #[error(transparent)]
    Failed(#[from] SessionError),
}

impl RefusedMessage {
    /// The errno value that the guest program gets.
    pub fn errno(&self) -> i32 {
        match self {
            RefusedMessage::Started => libc::EALREADY,
            RefusedMessage::Over => libc::ESHUTDOWN,
            RefusedMessage::Failed(failure) => failure.errno(),
            _ => libc::EINVAL,
        }
    }
}

/// One run.
pub struct Session<K> {
    directory: RunDirectory,
    order: RunOrder,
    driver: KernelDriver<K>,
    capture: Option<CaptureWriter>,
    timeline: Option<Timeline>,
    linux: LinuxCounters,
    /// How far each flow had come at the end of the warm-up and of each interval of `measure.throughput` since.
    intervals: Vec<Vec<FlowProgress>>,
    progress: ProgressFile,
    /// Whether the result has been written, or never will be.
    over: bool,
}

impl<K: KernelCalls + Send> Session<K> {
    /// Reads a run's directory and builds its experiment.
    ///
    /// # Errors
    /// When a file is missing or wrong, or the experiment cannot be built.
    pub fn open(directory: RunDirectory, kernel: K) -> Result<Box<Self>, SessionError> {
        // Boxed: the kernel's stack is too small to return a session by value.
        on_large_stack(|| Self::build(directory, kernel).map(Box::new)).map_err(SessionError::Thread)?
    }

    fn build(directory: RunDirectory, kernel: K) -> Result<Self, SessionError> {
        let progress = ProgressFile::new(&directory);
        let order = directory.read()?;
        let mut world = build(&order.spec)?;
        let in_virtual_time = order.spec.linux.as_ref().filter(|hosts| !hosts.dilated);
        if let Some(hosts) = in_virtual_time.filter(|_| order.spec.accounted.is_some()) {
            world.follow_external_hosts(hosts.has_processors());
        }
        if order.spec.tables.measure.capture && order.capture.is_none() {
            return Err(LabError::NoCaptureFile.into());
        }
        let path = order.capture.as_deref();
        let capture = path.map(|path| start_capture(&order.spec, &mut world, path)).transpose()?;
        let asked = order.timeline.as_ref();
        let timeline = asked.map(|asked| Timeline::begin(&order.spec, asked, &mut world)).transpose()?;
        let mut driver = KernelDriver::new(
            world,
            kernel,
            &devices(&order.plan),
            order.spec.tables.warmup,
            order.spec.tables.duration,
        );
        if let Some(ect_syn) = order.spec.tables.tcp.tcp.ect_syn {
            driver.restrict_ect_on_syn(ect_syn);
        }
        if !order.spec.tables.tcp.tcp.small_queues {
            driver.count_no_queues();
        }
        let classes: Vec<u8> = order.spec.linux.iter().flat_map(|linux| &linux.hosts).map(|host| host.class).collect();
        if classes.iter().any(|class| *class != 0) {
            driver.classify_programs(classes);
        }
        if let Network::Graph(graph) = &order.spec.network
            && !graph.topology.further().is_empty()
        {
            driver.divide(graph.topology.islands().to_vec());
        }
        let linux = LinuxCounters { ended: vec![None; order.plan.programs.len()], ..LinuxCounters::default() };
        Ok(Session { directory, order, driver, capture, timeline, linux, intervals: vec![], progress, over: false })
    }

    /// How many devices the kernel makes.
    pub fn devices(&self) -> u32 {
        self.order.plan.hosts.len() as u32
    }

    /// The experiment.
    pub fn spec(&self) -> &Spec {
        &self.order.spec
    }

    /// The plan of the experiment's Linux hosts.
    pub fn plan(&self) -> &Plan {
        &self.order.plan
    }

    /// The kernel.
    pub fn kernel(&mut self) -> &mut K {
        self.driver.kernel()
    }

    /// Whether the fabric's time has begun and not ended.
    pub fn is_running(&self) -> bool {
        self.driver.is_running()
    }

    /// Whether the result has been written, or never will be.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Takes a frame that the kernel sends: [`KernelDriver::send`].
    #[inline]
    pub fn send(&mut self, device: u32, cookie: Cookie, frame: &[u8], length: usize, now: u64) -> bool {
        self.driver.send(device, cookie, frame, length, now)
    }

    /// When the kernel has to call [`Self::run`] next: [`KernelDriver::next`].
    #[inline]
    pub fn next(&self) -> Option<u64> {
        self.driver.next()
    }

    /// Carries out the events that are due ([`KernelDriver::run`]), and updates the progress now and then.
    #[inline]
    pub fn run(&mut self, now: u64) {
        self.driver.run(now);
        self.progress.count(self.driver.elapsed(now));
    }

    /// Takes a message of the guest program.
    ///
    /// # Errors
    /// When the message is wrong, or reports that the run failed.
    pub fn control(&mut self, message: &[u8], now: u64) -> Result<(), RefusedMessage> {
        let message = GuestMessage::decode(message)?;
        self.driver.catch_up(now);
        match message {
            GuestMessage::Start => self.start(now),
            _ if self.over => Err(RefusedMessage::Over),
            GuestMessage::FlowConnected { flow } => self.flow_connected(flow),
            GuestMessage::FlowComplete { flow } => self.flow_complete(flow),
            GuestMessage::MessageComplete { flow } => self.message_complete(flow),
            GuestMessage::FlowState { flow, sender, when, info } => self.flow_state(flow, sender, when, info),
            GuestMessage::ProgramEnded { program, code } => self.program_ended(program, code),
            GuestMessage::Failed(why) => self.failed(&String::from_utf8_lossy(why)),
            GuestMessage::Interval => {
                self.interval();
                Ok(())
            }
            GuestMessage::Finish => self.finish(now),
        }
    }

    /// Whether the kernel has to report programs' writes.
    pub fn needs_writes(&self) -> bool {
        self.driver.world().records_writes()
    }

    /// Takes the report of a program's write: [`KernelDriver::wrote`].
    pub fn wrote(&mut self, ends: [SocketAddrV4; 2], sequence: u32, bytes: i64) {
        self.driver.wrote(ends, sequence, bytes);
    }

    /// Takes the report that a connection has closed: [`KernelDriver::closed`].
    pub fn closed(&mut self, ends: [SocketAddrV4; 2]) {
        self.driver.closed(ends);
    }

    fn start(&mut self, now: u64) -> Result<(), RefusedMessage> {
        if !self.driver.start(now) {
            return Err(RefusedMessage::Started);
        }
        self.progress.update(0);
        Ok(())
    }

    /// The flow's index, if it is a flow of Linux hosts.
    fn flow(&self, flow: u32) -> Result<usize, RefusedMessage> {
        let known = self.order.spec.flows.get(flow as usize).filter(|flow| flow.hosts == HostKind::Linux);
        known.map(|_| flow as usize).ok_or(RefusedMessage::Flow(flow))
    }

    fn flow_connected(&mut self, flow: u32) -> Result<(), RefusedMessage> {
        let flow = self.flow(flow)?;
        if self.driver.is_running() {
            let now = self.driver.world().now();
            self.driver.world_mut().reported_mut(flow).sender.established = Some(now);
        }
        Ok(())
    }

    fn flow_complete(&mut self, flow: u32) -> Result<(), RefusedMessage> {
        let flow = self.flow(flow)?;
        if self.driver.is_running() {
            self.driver.world_mut().complete(flow);
        }
        Ok(())
    }

    fn message_complete(&mut self, flow: u32) -> Result<(), RefusedMessage> {
        let index = self.flow(flow)?;
        if self.driver.is_running() && !self.driver.world_mut().complete_message(index) {
            return Err(RefusedMessage::Message(flow));
        }
        Ok(())
    }

    fn flow_state(&mut self, flow: u32, sender: bool, when: ReportTime, info: &[u8]) -> Result<(), RefusedMessage> {
        let index = self.flow(flow)?;
        let info = TcpInfo::parse(info).ok_or(RefusedMessage::Info(flow))?;
        if when == ReportTime::Sample {
            if sender {
                self.linux.samples.push(TcpInfoSample { at: self.driver.world().now(), flow, info });
            } else {
                flow_state::set_receiver(self.driver.world_mut().reported_mut(index), &info);
            }
            return Ok(());
        }
        let state = self.driver.world_mut().reported_mut(index);
        if sender {
            flow_state::set_sender(state, &info);
            self.linux.senders.insert(flow, info);
        } else {
            flow_state::set_receiver(state, &info);
        }
        let state = *state;
        if when == ReportTime::WarmupEnd
            && let Some(warm) = self.driver.warm_mut()
        {
            warm[index].state = state;
        }
        Ok(())
    }

    /// Records an interval of `measure.throughput` that has ended. The run may end within an interval: nothing arrives
    /// in the rest of it. The guest program may report the last interval or not; an interval that the run's time cuts
    /// short does not count.
    fn interval(&mut self) {
        let spec = &self.order.spec;
        let end = |every: Span| spec.tables.warmup + every * self.intervals.len() as u64;
        if spec.tables.measure.throughput.is_some_and(|every| end(every) <= spec.tables.duration) {
            self.intervals.push(self.driver.world().progress());
        }
    }

    fn program_ended(&mut self, program: u32, code: i32) -> Result<(), RefusedMessage> {
        let at = self.driver.world().now();
        let running = self.driver.is_running();
        let ended = self.linux.ended.get_mut(program as usize).ok_or(RefusedMessage::Program(program))?;
        // After the end of the run the guest program ends all programs that still run.
        if running {
            *ended = Some(ProgramEnd { at, code });
        }
        Ok(())
    }

    fn failed(&mut self, why: &str) -> Result<(), RefusedMessage> {
        self.over = true;
        self.directory.write_failure(why)?;
        Err(SessionError::Guest(why.into()).into())
    }

    fn finish(&mut self, now: u64) -> Result<(), RefusedMessage> {
        self.driver.finish(now);
        self.over = true;
        self.interval();
        self.progress.update(self.driver.elapsed(now));
        if self.order.spec.linux.as_ref().is_some_and(Linux::has_processors) {
            self.linux.processors = (0..self.devices()).map(|device| self.kernel().processors(device)).collect();
        }
        let concluded = on_large_stack(|| self.conclude()).map_err(SessionError::Thread).and_then(|done| done);
        concluded.inspect_err(|failure| {
            // The run ends without a result. The kernel's log says so too, in case this cannot be written.
            _ = self.directory.write_failure(&failure.to_string());
        })?;
        Ok(())
    }

    /// Measures the run and writes its result.
    fn conclude(&mut self) -> Result<(), SessionError> {
        if let Some(writer) = self.capture.take() {
            drop(self.driver.world_mut().fabric_mut().take_capture());
            writer.finish().map_err(LabError::from)?;
        }
        let RunOrder { spec, overrides, .. } = &self.order;
        self.linux.frames = self.driver.frames();
        self.linux.fidelity = self.driver.kernel().fidelity();
        let warm = self.driver.warm().unwrap_or_default().to_vec();
        let linux = Some(std::mem::take(&mut self.linux));
        let intervals = std::mem::take(&mut self.intervals);
        let causes = self.driver.world_mut().fabric_mut().take_causes();
        drop(self.driver.world_mut().fabric_mut().take_timeline());
        let counters = Counters { linux, intervals, causes, ..Counters::of(spec, self.driver.world(), warm)? };
        if let Some(timeline) = self.timeline.take() {
            finish_timeline(timeline, spec, &counters)?;
        }
        self.directory.write_outcome(&Outcome::of(spec, overrides, &counters))
    }
}

fn devices(plan: &Plan) -> Vec<Device> {
    plan.hosts.iter().map(|host| Device { host: HostId(host.host), address: host.address }).collect()
}
