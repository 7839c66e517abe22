//! What a run counted.

use super::LinuxCounters;
use crate::error::LabError;
use crate::spec::Spec;
use firstlight_messages::JobReport;
use firstlight_sim::{
    CircuitReport, FlowReport, MeterReport, PairReport, PauseReport, PortReport, ProbeReport, QcnReport, QueueReport,
    Totals, World,
};
use firstlight_units::{Span, Time};

/// What a run counted.
#[derive(Clone, Debug)]
pub struct Counters {
    /// How long the network ran, warm-up included, in the experiment's own time.
    pub elapsed: Span,
    /// The part after the warm-up.
    pub measured: Span,
    /// The flows when the warm-up ended.
    pub warm: Vec<FlowReport>,
    /// The flows at the end.
    pub flows: Vec<FlowReport>,
    /// Sized flows that are not complete.
    pub unfinished: usize,
    /// What became of the jobs of messages.
    pub jobs: Vec<JobReport>,
    /// What was seen of the measured pair.
    pub meter: Option<MeterReport>,
    /// Every port, link and queue.
    pub ports: Vec<PortReport>,
    /// Every pair of racks.
    pub pairs: Vec<PairReport>,
    /// The circuits that a control loop made.
    pub circuits: Vec<CircuitReport>,
    /// What pauses did, where links can be paused.
    pub pauses: Option<PauseReport>,
    /// The whole fabric.
    pub totals: Totals,
    /// The watched queues.
    pub queues: Vec<QueueReport>,
    /// What QCN did, where it is on.
    pub qcn: Option<QcnReport>,
    /// The probes.
    pub probes: Vec<ProbeReport>,
    /// What each flow had received at the end of the warm-up and of each interval of `measure.throughput` since.
    pub received: Vec<Vec<u64>>,
    /// Packets for a port where nobody listens.
    pub strays: u64,
    /// The run's digest.
    pub digest: u64,
    /// What its Linux hosts told, when there are some.
    pub linux: Option<LinuxCounters>,
}

impl Counters {
    /// What a world has counted that has run to its end; `warm` are its flows when the warm-up ended.
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
            measured: elapsed.saturating_sub(spec.warmup),
            warm,
            flows: world.flows(),
            unfinished: world.unfinished(),
            jobs: world.jobs(),
            meter: world.fabric().meter(),
            ports: world.fabric().ports(),
            pairs: world.fabric().pairs(),
            circuits: world.fabric().circuits().to_vec(),
            pauses: world.fabric().pauses(),
            totals,
            queues: world.fabric().queues(),
            qcn: world.fabric().qcn(),
            probes: world.probes(),
            received: vec![],
            strays: world.strays(),
            digest: world.fabric().digest(),
            linux: None,
        })
    }
}

impl Spec {
    /// A moment of the engine's clock as a span of the experiment's own time since the start.
    pub fn own_time(&self, at: Time) -> Span {
        Span::from_ps(at.as_ps() / u64::from(self.time_scale))
    }
}
