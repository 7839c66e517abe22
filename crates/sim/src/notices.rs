//! Notices of circuits: the control plane notifies hosts directly when a circuit is announced and when it has gone
//! down, instead of marks on ACKs (Etalon, NSDI'20, the end of section 5.3).
//!
//! The paper names the design and builds none. Here every host at a circuit's source gets the notice at the same
//! moment, a given time after the schedule's, over a control network of its own: a notice takes no room on the data's
//! links, is never lost and never late. It is an upper bound for what notifying hosts can gain.

use crate::fabric::Fabric;
use crate::flow::{EndpointIndex, FlowConfig};
use firstlight_circuits::{Action, Calendar};
use firstlight_net::fabric::HybridConfig;
use firstlight_units::{Span, Time};

/// When circuits are announced and go down, on the engine's clock, and how long a notice takes.
#[derive(Clone)]
pub(crate) struct NoticeSchedule {
    calendar: Calendar,
    delay: Span,
}

impl NoticeSchedule {
    /// The notices of this fabric, if it has any.
    pub(crate) fn of(config: &HybridConfig) -> Option<Self> {
        let (notices, scale) = (config.notices.as_ref()?, u64::from(config.time_scale));
        let week = config.week.scaled(config.time_scale);
        let calendar = Calendar::new(week, None, Some(notices.advance * scale));
        Some(NoticeSchedule { calendar, delay: notices.delay * scale })
    }
}

/// The notices to the senders of a world.
pub(crate) struct Notices {
    schedule: NoticeSchedule,
    /// How many racks there are.
    racks: usize,
    /// Circuits that are announced or up, of each pair of racks.
    circuits: Vec<u16>,
    /// The senders of each pair of racks, by their endpoints.
    senders: Vec<Vec<usize>>,
}

impl Notices {
    /// The notices of this fabric, if it has any, to the senders of simulated flows.
    pub(crate) fn of<'a>(
        fabric: &Fabric,
        flows: impl Iterator<Item = &'a FlowConfig>,
        index: &EndpointIndex,
    ) -> Option<Self> {
        let (schedule, rack_of) = (fabric.notice_schedule()?.clone(), fabric.racks_of_hosts());
        let racks = rack_of.iter().max().map_or(0, |last| usize::from(*last) + 1);
        let mut senders = vec![vec![]; racks * racks];
        for (flow, endpoints) in flows.zip(&index.of_flows).filter(|(flow, _)| !flow.external) {
            let [src, dst] = [flow.src, flow.dst].map(|host| usize::from(rack_of[host.index()]));
            senders[src * racks + dst].push(endpoints[0]);
        }
        Some(Notices { schedule, racks, circuits: vec![0; racks * racks], senders })
    }

    /// When the next notice may arrive.
    pub(crate) fn next(&self) -> Time {
        self.schedule.calendar.next_due() + self.schedule.delay
    }

    /// The senders that are notified by `now`, if the next operation of the schedule is due: by their endpoints, with
    /// whether their circuit is announced, or else has gone down.
    pub(crate) fn poll(&mut self, now: Time) -> Option<Vec<(usize, bool)>> {
        if self.next() > now {
            return None;
        }
        let operation = self.schedule.calendar.pop();
        let mut notified = vec![];
        if !matches!(operation.action, Action::Mark | Action::DayEnds) {
            return Some(notified);
        }
        for (src, dst) in self.schedule.calendar.day(&operation).matching.pairs() {
            let pair = src.index() * self.racks + dst.index();
            let circuits = &mut self.circuits[pair];
            let up = operation.action == Action::Mark;
            if up {
                *circuits += 1;
            } else {
                *circuits -= 1;
            }
            if *circuits == u16::from(up) {
                notified.extend(self.senders[pair].iter().map(|endpoint| (*endpoint, up)));
            }
        }
        Some(notified)
    }
}
