//! Carrying out the calendar: days, nights, VOQ sizes, marks; and the record of the days of a control loop.

use super::core::Core;
use super::hybrid::{Hybrid, small};
use crate::config::HybridConfig;
use crate::events::Kind;
use crate::report::CircuitReport;
use firstlight_circuits::{Action, Calendar, Demand, Operation, RackId, Week};
use firstlight_net::VoqLimits;
use firstlight_units::{Span, Time};

/// The calendar on the engine's clock, and what its days do to the VOQs.
pub(super) struct Schedule {
    calendar: Calendar,
    scale: u32,
    small: VoqLimits,
    large: Option<VoqLimits>,
    marks: bool,
    /// The circuits that have been, when a control loop makes them.
    pub(super) record: Option<Box<Record>>,
}

/// What a control loop asked for, and what became of it.
#[derive(Default)]
pub(super) struct Record {
    /// The demand that the present week, and the next one when it is planned, were made for; and since which week.
    demands: Vec<(u64, Demand)>,
    pub(super) circuits: Vec<CircuitReport>,
}

impl Schedule {
    pub(super) fn new(config: &HybridConfig) -> Self {
        let scale = u64::from(config.time_scale);
        let week = config.week.scaled(config.time_scale);
        let enlarge = config.voq.resize.as_ref().map(|resize| resize.advance * scale);
        let calendar = if config.control.is_some() { Calendar::planned } else { Calendar::new };
        let large = |large| VoqLimits { capacity: large, ecn: config.voq.ecn_large };
        Schedule {
            calendar: calendar(week, enlarge, config.marks.map(|advance| advance * scale)),
            scale: config.time_scale,
            small: small(&config.voq),
            large: config.voq.resize.as_ref().map(|resize| large(resize.large)),
            marks: config.marks.is_some(),
            record: config.control.is_some().then(Box::default),
        }
    }

    pub(super) fn next_due(&self) -> Time {
        self.calendar.next_due()
    }
}

impl Record {
    /// What a pair was thought to have when that week was made.
    fn demand(&self, week: u64, src: RackId, dst: RackId) -> u64 {
        let made = self.demands.iter().rev().find(|(since, _)| *since <= week);
        made.map_or(0, |(_, demand)| demand.get(src, dst))
    }
}

impl Hybrid {
    /// Does all that the calendar has for this moment, then lets every rack send what it now may.
    pub(super) fn on_calendar<const P: bool>(&mut self, core: &mut Core) {
        while self.schedule.next_due() <= core.now {
            let operation = self.schedule.calendar.pop();
            self.carry_out(core, operation);
        }
        core.reschedule(Some(self.schedule.next_due()), Kind::Calendar, 0);
        for src in 0..self.racks {
            self.wake_circuit::<P>(core, src);
            self.wake_uplink::<P>(core, src);
        }
        if P {
            self.look_at_uplinks(core);
        }
    }

    /// Plans the next week, which was made for this demand; it is not yet stretched.
    pub(super) fn plan(&mut self, core: &mut Core, week: &Week, demand: Demand) {
        let schedule = &mut self.schedule;
        let number = schedule.calendar.plan(week.scaled(schedule.scale), core.now);
        let record = schedule.record.as_mut().expect("a control loop keeps a record");
        record.demands.push((number, demand));
        if record.demands.len() > 3 {
            record.demands.remove(0);
        }
        core.reschedule(Some(schedule.next_due()), Kind::Calendar, 0);
    }

    fn carry_out(&mut self, core: &mut Core, operation: Operation) {
        for src in 0..self.racks {
            let day = self.schedule.calendar.day(&operation);
            let Some(dst) = day.matching.destination(RackId(src as u16)) else { continue };
            let (dst, until) = (dst.index(), operation.at + day.day);
            let index = self.pair(src, dst);
            let pair = &mut self.pairs[index];
            match operation.action {
                Action::Enlarge => {
                    pair.claims += 1;
                    self.fit_voq(core, index);
                }
                Action::Mark => pair.marks += 1,
                Action::NightBegins => pair.off += 1,
                Action::DayBegins => self.circuits[src].connect(dst, until),
                Action::DayEnds => self.end_day(core, src, dst, &operation),
            }
            self.refresh(src, dst);
        }
    }

    fn end_day(&mut self, core: &mut Core, src: usize, dst: usize, operation: &Operation) {
        self.circuits[src].disconnect();
        self.note_circuit(src, dst, operation);
        let index = self.pair(src, dst);
        let pair = &mut self.pairs[index];
        pair.off -= 1;
        pair.marks -= u16::from(self.schedule.marks);
        if self.schedule.large.is_some() {
            pair.claims -= 1;
            self.fit_voq(core, index);
        }
    }

    /// Records a circuit that has been.
    fn note_circuit(&mut self, src: usize, dst: usize, operation: &Operation) {
        let schedule = &mut self.schedule;
        let Some(record) = &mut schedule.record else { return };
        let lasted = schedule.calendar.day(operation).day.as_ps();
        let own = |ps: u64| Span::from_ps(ps / u64::from(schedule.scale));
        let (src, dst, carried) = (RackId(src as u16), RackId(dst as u16), self.circuits[src].carried);
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

    /// Gives a VOQ the size that its claims ask for, dropping from the tail what no longer fits.
    fn fit_voq(&mut self, core: &mut Core, index: usize) {
        let pair = &mut self.pairs[index];
        let large = self.schedule.large.filter(|_| pair.claims > 0);
        pair.voq.set_limits(large.unwrap_or(self.schedule.small));
        while let Some(id) = self.pairs[index].voq.drop_excess(core.now) {
            if let Some(point) = self.points.voqs.get_mut(index) {
                point.on_gone(core.arena.get(id));
            }
            if self.pauses.is_some() {
                self.on_dropped(core, id, index);
            }
            core.lose(id, Kind::UplinkFree, index);
        }
    }
}
