//! Carrying out the calendar: days, nights, VOQ sizes, marks.

use super::core::Core;
use super::hybrid::{Hybrid, small};
use crate::config::HybridConfig;
use crate::events::Kind;
use firstlight_circuits::{Action, Calendar, Operation, Week};
use firstlight_net::VoqLimits;
use firstlight_units::Time;

/// The week, stretched to the engine's clock, and what its days do to the VOQs.
pub(super) struct Schedule {
    week: Week,
    calendar: Calendar,
    small: VoqLimits,
    large: Option<VoqLimits>,
    marks: bool,
}

impl Schedule {
    pub(super) fn new(config: &HybridConfig) -> Self {
        let scale = u64::from(config.time_scale);
        let week = config.week.scaled(config.time_scale);
        let enlarge = config.voq.resize.as_ref().map(|resize| resize.advance * scale);
        let calendar = Calendar::new(&week, enlarge, config.marks.map(|advance| advance * scale));
        let large = |large| VoqLimits { capacity: large, ecn: config.voq.ecn_large };
        Schedule {
            week,
            calendar,
            small: small(&config.voq),
            large: config.voq.resize.as_ref().map(|resize| large(resize.large)),
            marks: config.marks.is_some(),
        }
    }

    pub(super) fn next_due(&self) -> Time {
        self.calendar.peek().at
    }
}

impl Hybrid {
    /// Does all that the calendar has for this moment, then lets every rack send what it now may.
    pub(super) fn on_calendar(&mut self, core: &mut Core) {
        while self.schedule.next_due() <= core.now {
            let operation = self.schedule.calendar.pop();
            self.carry_out(core, operation);
        }
        core.reschedule(Some(self.schedule.next_due()), Kind::Calendar, 0);
        for src in 0..self.racks {
            self.wake_circuit(core, src);
            self.wake_uplink(core, src);
        }
    }

    fn carry_out(&mut self, core: &mut Core, operation: Operation) {
        for src in 0..self.racks {
            let day = &self.schedule.week.days()[operation.day];
            let Some(dst) = day.matching.destination(firstlight_circuits::RackId(src as u16)) else { continue };
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
                Action::DayEnds => self.end_day(core, src, index),
            }
            self.refresh(src, dst);
        }
    }

    fn end_day(&mut self, core: &mut Core, src: usize, index: usize) {
        self.circuits[src].disconnect();
        let pair = &mut self.pairs[index];
        pair.off -= 1;
        pair.marks -= u16::from(self.schedule.marks);
        if self.schedule.large.is_some() {
            pair.claims -= 1;
            self.fit_voq(core, index);
        }
    }

    /// Gives a VOQ the size that its claims ask for, dropping from the tail what no longer fits.
    fn fit_voq(&mut self, core: &mut Core, index: usize) {
        let pair = &mut self.pairs[index];
        let large = self.schedule.large.filter(|_| pair.claims > 0);
        pair.voq.set_limits(large.unwrap_or(self.schedule.small));
        while let Some(id) = pair.voq.drop_excess() {
            core.lose(id, Kind::UplinkFree, index);
        }
    }
}
