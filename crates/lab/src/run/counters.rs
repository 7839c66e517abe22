//! The counters of a run.

use super::LinuxCounters;
use crate::error::LabError;
use firstlight_messages::{JobReport, MessageReport};
use firstlight_sim::causes::CauseReport;
use firstlight_sim::{
    CircuitReport, FlowProgress, FlowReport, MeterReport, PairReport, PauseReport, PortReport, ProbeReport, QcnReport,
    QueueReport, Totals, World,
};
use firstlight_spec::{Job, Spec};
use firstlight_units::{Bytes, Span, Time};

/// The counters of a run.
#[derive(Clone, Debug)]
pub struct Counters {
    /// How long the network ran, warm-up included, in the experiment's own time.
    pub elapsed: Span,
    /// When the run ended, on the engine's clock.
    pub end: Time,
    /// How long the network ran after the warm-up, in the experiment's own time.
    pub measured: Span,
    /// The flows at the end of the warm-up.
    pub warm: Vec<FlowReport>,
    /// The flows at the end of the run.
    pub flows: Vec<FlowReport>,
    /// How many flows of a given size are not complete.
    pub unfinished: usize,
    /// The jobs, by number.
    pub jobs: Vec<JobReport>,
    /// The dependent messages, by number.
    pub messages: Vec<MessageReport>,
    /// The measured pair, if there is one.
    pub meter: Option<MeterReport>,
    /// All ports, links and queues.
    pub ports: Vec<PortReport>,
    /// All pairs of racks.
    pub pairs: Vec<PairReport>,
    /// The circuits of a control loop.
    pub circuits: Vec<CircuitReport>,
    /// All pauses, where links can be paused.
    pub pauses: Option<PauseReport>,
    /// Counts of the whole fabric.
    pub totals: Totals,
    /// The watched queues.
    pub queues: Vec<QueueReport>,
    /// QCN, where it is on.
    pub qcn: Option<QcnReport>,
    /// All probes.
    pub probes: Vec<ProbeReport>,
    /// How far each flow had come at the end of the warm-up and of each interval of `measure.throughput` since.
    pub intervals: Vec<Vec<FlowProgress>>,
    /// Packets that arrived at a port without a socket.
    pub strays: u64,
    /// Digest of the run.
    pub digest: u64,
    /// The causes of packets' waits, where `measure.account` is given.
    pub causes: Option<CauseReport>,
    /// Reports of the run's Linux hosts, if it has any.
    pub linux: Option<LinuxCounters>,
}

impl Counters {
    /// The counters of a world that has run to its end; `warm` are its flows at the end of the warm-up.
    ///
    /// # Errors
    /// When packets are not conserved.
    pub fn of(spec: &Spec, world: &World, warm: Vec<FlowReport>) -> Result<Counters, LabError> {
        let totals = world.fabric().totals();
        if !totals.imbalances.is_empty() {
            let texts: Vec<String> = totals.imbalances.iter().map(ToString::to_string).collect();
            return Err(LabError::Conservation(texts.join("; ")));
        }
        let elapsed = spec.own_time(world.now());
        Ok(Counters {
            elapsed,
            end: world.now(),
            measured: elapsed.saturating_sub(spec.tables.warmup),
            warm,
            flows: world.flows(),
            unfinished: world.unfinished(),
            jobs: job_reports(spec, world),
            messages: world.messages(),
            meter: world.fabric().meter(),
            ports: world.fabric().ports(),
            pairs: world.fabric().pairs(),
            circuits: world.fabric().circuits().to_vec(),
            pauses: world.fabric().pauses(),
            totals,
            queues: world.fabric().queues(),
            qcn: world.fabric().qcn(),
            probes: world.probes(),
            intervals: vec![],
            strays: world.strays(),
            digest: world.fabric().digest(),
            causes: None,
            linux: None,
        })
    }
}

/// The reports of all jobs: those of messages as the world has them, those of flows by the flows' times.
fn job_reports(spec: &Spec, world: &World) -> Vec<JobReport> {
    let (of_messages, flows) = (world.jobs(), world.flows());
    let report = |(number, job): (usize, &Job)| {
        if job.flows.is_empty() {
            return of_messages[number];
        }
        let takes_part = |flow: &usize| !spec.tables.leaves_out(*flow);
        let own: Vec<&FlowReport> = job.flows.clone().filter(takes_part).map(|flow| &flows[flow]).collect();
        JobReport {
            start: own.iter().map(|flow| flow.start).min().filter(|start| *start < Time::MAX),
            finish: own
                .iter()
                .map(|flow| flow.finish)
                .collect::<Option<Vec<_>>>()
                .and_then(|all| all.into_iter().max()),
            bytes: Bytes::new(own.iter().filter_map(|flow| flow.size).map(Bytes::get).fold(0, u64::saturating_add)),
            messages: own.len() as u32,
        }
    };
    spec.jobs.iter().enumerate().map(report).collect()
}
