//! The control loop of a hybrid fabric: estimate, schedule, execute, week after week (Etalon, NSDI'20, section 2.1).
//!
//! At the start of each week demand is estimated. The schedule made for it is there when the computation is over, and the
//! fabric follows it from the end of that week on; what is not there by then comes a week later. While a computation
//! goes on, no other begins. The first week comes before any estimate.

use crate::config::{ControlConfig, DemandSource};
use crate::fabric::Fabric;
use crate::flow::{FlowConfig, Places};
use firstlight_circuits::{Demand, Frame, Week};
use firstlight_net::HostId;
use firstlight_units::{Bytes, Span, Time};

/// The loop's state.
pub(crate) struct Control {
    config: ControlConfig,
    frame: Frame,
    /// The week and the computation, on the engine's clock.
    week: Span,
    compute: Span,
    /// The schedule that is being computed, and its demand.
    pending: Option<(Week, Demand)>,
    /// Writes that are known before they happen, the last one first.
    untold: Vec<Write>,
}

/// What a flow is going to write.
#[derive(Clone, Copy)]
struct Write {
    at: Time,
    place: usize,
    ends: [HostId; 2],
    bytes: Option<Bytes>,
}

impl Control {
    /// The loop of this fabric, if it has one, for flows that start at these moments.
    pub(crate) fn of(fabric: &mut Fabric, flows: &[(&FlowConfig, Time)], places: &Places) -> Option<Self> {
        let hybrid = fabric.controlled()?;
        let config = hybrid.control.as_ref()?;
        let foreseen = config.demand == DemandSource::Oracle;
        let known = if foreseen { flows } else { &[] };
        let mut untold: Vec<Write> = (known.iter().zip(&places.ends))
            .map(|((flow, at), ends)| Write { at: *at, place: ends[0], ends: [flow.src, flow.dst], bytes: flow.size })
            .collect();
        untold.sort_by_key(|write| std::cmp::Reverse(write.at));
        let scale = u64::from(hybrid.time_scale);
        let control = Control {
            config: config.clone(),
            frame: hybrid.frame(config),
            week: hybrid.week.length() * scale,
            compute: config.compute * scale,
            pending: None,
            untold,
        };
        if control.config.demand != DemandSource::Voq {
            fabric.hear_writes(places.first.clone());
        }
        Some(control)
    }

    /// Whether writes of flows are to be told as they happen. A flow, whoever's its ends, writes all it has when it starts.
    pub(crate) fn hears_writes(&self) -> bool {
        self.config.demand == DemandSource::Adu
    }

    /// Whether messages are to be told as they are written: nobody knows before when that is.
    pub(crate) fn hears_messages(&self) -> bool {
        self.config.demand != DemandSource::Voq
    }

    /// A week starts, or a computation is over. Tells when it is to be called next.
    pub(crate) fn on_due(&mut self, fabric: &mut Fabric, now: Time) -> Time {
        if let Some((week, demand)) = self.pending.take() {
            fabric.plan(&week, demand);
            return self.border(now);
        }
        let demand = self.estimate(fabric, now);
        let made = self.config.scheduler.schedule(&demand, &self.frame);
        let week = made.expect("a frame with room for one demand has room for all");
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
        while let Some(write) = self.untold.pop_if(|write| write.at <= horizon) {
            fabric.on_write(write.place, write.ends, write.bytes.map(Bytes::get));
        }
        fabric.announced_demand()
    }
}
