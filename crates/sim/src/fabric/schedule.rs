//! Carrying out the calendar: days, nights, VOQ sizes, marks; and the record of the days of a control loop.

use super::core::Core;
use super::hybrid::HybridFabric;
use super::link_layer::LinkLayer;
use super::lossless::PausePoint;
use super::racks::{Racks, rack_id};
use crate::config::HybridConfig;
use crate::events::EventKind;
use crate::report::CircuitReport;
use firstlight_circuits::{Action, Calendar, Demand, Operation, RackId, Week};
use firstlight_net::Length;
use firstlight_units::{Span, Time};

/// How much a VOQ holds, and from where on it marks.
type VoqSize = (Option<Length>, Option<Length>);

/// The calendar on the engine's clock, and the days' changes of VOQs.
pub(super) struct CircuitSchedule {
    calendar: Calendar,
    scale: u32,
    small: VoqSize,
    large: Option<VoqSize>,
    marks: bool,
    /// The circuits that have been, when a control loop makes them.
    record: Option<Box<CircuitRecord>>,
}

/// The demands for which a control loop has made weeks, and the circuits that there were.
#[derive(Default)]
struct CircuitRecord {
    /// The demands for which the present week and, if it is planned, the next one were made, each with its first week.
    demands: Vec<(u64, Demand)>,
    circuits: Vec<CircuitReport>,
}

impl CircuitSchedule {
    pub(super) fn new(config: &HybridConfig) -> Self {
        let scale = u64::from(config.time_scale);
        let week = config.week.scaled(config.time_scale);
        let (discipline, resize) = (&config.voq.discipline, config.voq.resize.as_ref());
        let calendar = if config.control.is_some() { Calendar::planned } else { Calendar::new };
        let enlarge = resize.map(|resize| resize.advance * scale);
        let linger = resize.map_or(Span::ZERO, |resize| resize.linger * scale);
        CircuitSchedule {
            calendar: calendar(week, enlarge, config.marks.map(|advance| advance * scale)).shrinking(linger),
            scale: config.time_scale,
            small: (discipline.queue, discipline.ecn),
            large: resize.map(|resize| (resize.limit, resize.threshold)),
            marks: config.marks.is_some(),
            record: config.control.is_some().then(Box::default),
        }
    }

    pub(super) fn next_due(&self) -> Time {
        self.calendar.next_due()
    }

    /// The circuits that a control loop has made, in the order in which they went down.
    pub(super) fn circuits(&self) -> &[CircuitReport] {
        self.record.as_ref().map_or(&[], |record| &record.circuits)
    }

    /// Records a circuit that is over and has carried this number of bytes.
    fn record_circuit(&mut self, src: usize, dst: usize, operation: &Operation, carried: u64) {
        let Some(record) = &mut self.record else { return };
        let lasted = self.calendar.day(operation).day.as_ps();
        let own = |ps: u64| Span::from_ps(ps / u64::from(self.scale));
        let (src, dst) = (rack_id(src), rack_id(dst));
        record.circuits.push(CircuitReport {
            week: operation.week,
            day: operation.day,
            begins: own(operation.at.as_ps() - lasted),
            ends: own(operation.at.as_ps()),
            src,
            dst,
            demand: record.demand(operation.week, src, dst),
            carried,
        });
    }
}

impl CircuitRecord {
    /// The demand of a pair that was estimated when that week was made.
    fn demand(&self, week: u64, src: RackId, dst: RackId) -> u64 {
        let made = self.demands.iter().rev().find(|(since, _)| *since <= week);
        made.map_or(0, |(_, demand)| demand.get(src, dst))
    }
}

impl Racks {
    /// Plans the next week, which was made for this demand; it is not yet stretched.
    pub(super) fn plan(&mut self, core: &mut Core, week: &Week, demand: Demand) {
        let schedule = &mut self.schedule;
        let number = schedule.calendar.plan(week.scaled(schedule.scale), core.now);
        let record = schedule.record.as_mut().expect("a control loop keeps a record");
        record.demands.push((number, demand));
        if record.demands.len() > 3 {
            record.demands.remove(0);
        }
        core.reschedule(Some(schedule.next_due()), EventKind::Calendar, 0);
    }
}

impl<L: LinkLayer> HybridFabric<L> {
    /// Carries out all operations of the calendar at this moment. Every rack then sends the packets that it now may
    /// send.
    pub(super) fn on_calendar(&mut self, core: &mut Core) {
        while self.racks.schedule.next_due() <= core.now {
            let operation = self.racks.schedule.calendar.pop();
            self.carry_out(core, operation);
        }
        core.reschedule(Some(self.racks.schedule.next_due()), EventKind::Calendar, 0);
        for src in 0..self.racks.count {
            self.wake_circuit(core, src);
            self.wake_uplink(core, src);
        }
        L::on_paths_changed(self, core);
    }

    fn carry_out(&mut self, core: &mut Core, operation: Operation) {
        for src in 0..self.racks.count {
            let day = self.racks.schedule.calendar.day(&operation);
            let Some(dst) = day.matching.destination(rack_id(src)) else { continue };
            let (dst, until) = (dst.index(), operation.at + day.day);
            let index = self.racks.pair(src, dst);
            let pair = &mut self.racks.pairs[index];
            if let Some(recorder) = &mut core.recorder {
                recorder.operation(operation.action, operation.at, src, dst);
            }
            match operation.action {
                Action::Enlarge => {
                    pair.claims += 1;
                    self.fit_voq(core, src, dst);
                }
                Action::Mark => pair.marks += 1,
                // Mice have the packet path at all times.
                Action::NightBegins => pair.off += u16::from(pair.mice.is_none()),
                Action::DayBegins => self.circuits[src].connect(dst, until),
                Action::DayEnds => self.end_day(src, dst, &operation),
                Action::Shrink => {
                    pair.claims -= 1;
                    self.fit_voq(core, src, dst);
                }
            }
            self.refresh(src, dst);
        }
    }

    fn end_day(&mut self, src: usize, dst: usize, operation: &Operation) {
        self.circuits[src].disconnect();
        let Racks { schedule, pairs, count, .. } = &mut self.racks;
        schedule.record_circuit(src, dst, operation, self.circuits[src].carried);
        let pair = &mut pairs[src * *count + dst];
        pair.off -= u16::from(pair.mice.is_none());
        pair.marks -= u16::from(schedule.marks);
    }

    /// Gives a VOQ the size that its claims ask for, and drops packets that no longer fit from its tail.
    fn fit_voq(&mut self, core: &mut Core, src: usize, dst: usize) {
        let index = self.racks.pair(src, dst);
        let pair = &mut self.racks.pairs[index];
        let large = self.racks.schedule.large.filter(|_| pair.claims > 0);
        let (limit, threshold) = large.unwrap_or(self.racks.schedule.small);
        pair.voq.resize(limit, threshold);
        while let Some(id) = self.racks.pairs[index].voq.drop_excess(core.now) {
            L::record_loss(self);
            L::on_departure(self, core, id, PausePoint::Voq(src, dst));
            core.lose(id, EventKind::UplinkFree, index);
        }
    }
}
