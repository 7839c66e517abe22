//! The control loop of a hybrid fabric: estimate, schedule, execute, week after week (Etalon, NSDI'20, section 2.1).
//!
//! At the start of each week demand is estimated. Its schedule is ready when the computation is over, and the fabric
//! uses it from the end of that week on. A schedule that is not ready at that time is used a week later. While a
//! computation is running, no other begins. The first week has a schedule without an estimate.

use crate::config::{ControlConfig, DemandSource};
use crate::fabric::Fabric;
use crate::flow::{EndpointIndex, FlowConfig};
use firstlight_circuits::{Demand, Frame, Week};
use firstlight_net::HostId;
use firstlight_units::{Bytes, Span, Time};

/// The loop's state.
pub(crate) struct ControlLoop {
    config: ControlConfig,
    frame: Frame,
    /// Length of the week on the engine's clock.
    week: Span,
    /// Length of the computation on the engine's clock.
    compute: Span,
    /// The schedule that is being computed, and its demand.
    pending: Option<(Week, Demand)>,
    /// Writes that are known before they happen, the last one first.
    foreseen: Vec<ForeseenWrite>,
}

/// A write that a flow is going to make.
#[derive(Clone, Copy)]
struct ForeseenWrite {
    at: Time,
    endpoint: usize,
    hosts: [HostId; 2],
    bytes: Option<Bytes>,
}

impl ControlLoop {
    /// The control loop of this fabric, if it has one. `flows` has each flow with the moment at which it starts.
    pub(crate) fn of(fabric: &mut Fabric, flows: &[(&FlowConfig, Time)], index: &EndpointIndex) -> Option<Self> {
        let hybrid = fabric.controlled()?;
        let config = hybrid.control.as_ref()?;
        let known = if config.demand == DemandSource::Oracle { flows } else { &[] };
        let write = |((flow, at), endpoints): (&(&FlowConfig, Time), &[usize; 2])| {
            let hosts = [flow.src, flow.dst];
            ForeseenWrite { at: *at, endpoint: endpoints[0], hosts, bytes: flow.size }
        };
        let mut foreseen: Vec<ForeseenWrite> = known.iter().zip(&index.of_flows).map(write).collect();
        foreseen.sort_by_key(|write| std::cmp::Reverse(write.at));
        let scale = u64::from(hybrid.time_scale);
        let control = ControlLoop {
            config: config.clone(),
            frame: hybrid.frame(config),
            week: hybrid.week.length() * scale,
            compute: config.compute * scale,
            pending: None,
            foreseen,
        };
        if control.config.demand != DemandSource::Voq {
            fabric.record_writes(index.first.clone());
        }
        Some(control)
    }

    /// Whether writes of flows are recorded as they happen. A flow writes all it has when it starts, on external hosts
    /// too.
    pub(crate) fn records_writes(&self) -> bool {
        self.config.demand == DemandSource::Adu
    }

    /// Whether messages are recorded as they are written: that moment is not known before, not even to the oracle.
    pub(crate) fn records_messages(&self) -> bool {
        self.config.demand != DemandSource::Voq
    }

    /// A week starts, or a computation is over. Returns when the loop is due next.
    pub(crate) fn on_due(&mut self, fabric: &mut Fabric, now: Time) -> Time {
        if let Some((week, demand)) = self.pending.take() {
            fabric.plan(&week, demand);
            return self.border(now);
        }
        let demand = self.estimate(fabric, now);
        let made = self.config.scheduler.schedule(&demand, &self.frame);
        // A frame without room for a day has no circuits.
        let week = made.unwrap_or_else(|_| Week::idle(demand.racks(), self.frame.week));
        if self.compute.is_zero() {
            fabric.plan(&week, demand);
            return now + self.week;
        }
        self.pending = Some((week, demand));
        now + self.compute
    }

    /// The next start of a week, which may be this moment.
    fn border(&self, now: Time) -> Time {
        let weeks = now.as_ps().div_ceil(self.week.as_ps());
        Time::from_ps(weeks.saturating_mul(self.week.as_ps()))
    }

    fn estimate(&mut self, fabric: &mut Fabric, now: Time) -> Demand {
        let horizon = match self.config.demand {
            DemandSource::Voq => return fabric.voq_demand(),
            DemandSource::Adu => now,
            // The end of the week that is to be scheduled.
            DemandSource::Oracle => now + self.week * 2,
        };
        while let Some(write) = self.foreseen.pop_if(|write| write.at <= horizon) {
            fabric.on_write(write.endpoint, write.hosts, write.bytes.map(Bytes::get));
        }
        fabric.adu_demand()
    }
}
