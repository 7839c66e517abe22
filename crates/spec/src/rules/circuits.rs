//! Rules about hybrid fabrics: racks, VOQs and the weeks of the circuit switch.

use super::{Rules, is_paused};
use crate::tables::{Experiment, MOST_HOSTS, RackCounts, Schedule};
use firstlight_circuits::{Day, Demand, Frame, Matching, RackId, Scheduler, Week, WeekError};
use firstlight_units::Span;

/// Most samples of a series.
const MOST_SAMPLES: u64 = 1_000_000;

impl Rules<'_> {
    pub(super) fn hybrid(&mut self, fabric: &RackCounts) -> Option<Week> {
        let hosts = u64::from(fabric.racks) * u64::from(fabric.hosts_per_rack);
        if hosts > MOST_HOSTS {
            self.wrong("fabric.hosts_per_rack", format!("{hosts} hosts in all are too many: use at most {MOST_HOSTS}"));
        }
        let racks = fabric.racks;
        if self.experiment.packet.as_ref().is_some_and(|packet| !packet.switched) && racks != 2 {
            self.wrong(
                "packet.switched",
                format!("a network without a switch joins two racks, not {racks}: use fabric.racks = 2 or take it out"),
            );
        }
        self.pair(racks);
        self.capacity();
        self.segregation();
        let week = self.week(racks as usize);
        self.control(racks as usize);
        if let Some(week) = &week {
            self.days(week);
            self.advances(week);
            self.samples(week);
        }
        week
    }

    fn pair(&mut self, racks: u32) {
        let Some((src, dst)) = self.experiment.measure.pair.map(|pair| (pair.0, pair.1)) else { return };
        if let Some(rack) = [src, dst].into_iter().find(|rack| u32::from(*rack) >= racks) {
            self.wrong("measure.pair", format!("there is no rack {rack}: the fabric has racks 0 to {}", racks - 1));
        } else if src == dst {
            self.wrong("measure.pair", format!("[{src}, {dst}] is one rack, not a pair: write for example [0, 1]"));
        }
    }

    /// Checks that a VOQ has a capacity, unless pauses bound its length.
    fn capacity(&mut self) {
        if self.experiment.voq.small.is_some() {
            return;
        }
        if !is_paused(self.experiment) {
            self.wrong("voq.small", "missing: write for example small = 1 in [voq]");
        } else if self.experiment.voq.large.is_some() {
            let text = "missing: voq.large needs it; add it, or take out voq.large";
            self.wrong("voq.small", text);
        }
    }

    /// Refuses segregated routing together with features that need one VOQ per pair.
    fn segregation(&mut self) {
        if self.experiment.switches.segregation.is_none() {
            return;
        }
        let others = [("[pfc]", is_paused(self.experiment)), ("[qcn]", self.experiment.interface.qcn.is_some())];
        for (other, _) in others.into_iter().filter(|(_, given)| *given) {
            self.wrong("segregation", format!("is not modelled together with {other}: take out one of them"));
        }
    }

    fn week(&mut self, racks: usize) -> Option<Week> {
        let (key, week) = match self.experiment.schedule.as_ref().expect("a hybrid fabric has a schedule") {
            Schedule::Strobe(days) => ("schedule.day", Week::strobe(racks, days.day, days.night)),
            Schedule::Etalon(_) if racks != 3 => {
                self.wrong(
                    "fabric.racks",
                    format!("the etalon schedule is of 3 racks that stand for more, not of {racks}: use racks = 3"),
                );
                return None;
            }
            Schedule::Etalon(etalon) => {
                let (stands_for, days) = (etalon.stands_for as usize, &etalon.equal);
                ("schedule.stands_for", Week::etalon(stands_for, days.day, days.night))
            }
            Schedule::List(_) => ("schedule.days", self.listed_week(racks)?),
            computed => ("schedule.week", Ok(Week::idle(racks, computed.computed()?.1.week))),
        };
        week.map_err(|error| self.wrong(key, error.to_string())).ok()
    }

    fn listed_week(&mut self, racks: usize) -> Option<Result<Week, WeekError>> {
        let Some(Schedule::List(list)) = &self.experiment.schedule else { return None };
        let mut days = vec![];
        for (index, listed) in list.days.iter().enumerate() {
            let pairs: Vec<(RackId, RackId)> = listed.matching.iter().map(|pair| pair.racks()).collect();
            match Matching::new(racks, &pairs) {
                // A day without a length was found before.
                Ok(matching) => {
                    let day = listed.day.or(list.day)?;
                    days.push(Day { night: list.night, day, matching });
                }
                Err(error) => self.wrong(&format!("schedule.days.{index}.matching"), error.to_string()),
            }
        }
        (days.len() == list.days.len() && !days.is_empty()).then(|| Week::new(days))
    }

    /// A computed week has room for a schedule, and a day for a packet.
    fn control(&mut self, racks: usize) {
        let Some((scheduler, frame)) = frame(self.experiment) else { return };
        let packet = frame.circuit.tx_time(self.experiment.hosts.packet_on_link());
        if frame.least_day < packet {
            let given = self.places.has("schedule.least_day");
            let key = if given { "schedule.least_day" } else { "schedule.night" };
            let text = format!(
                "days of {} may be shorter than one packet, {packet}: use least_day = \"{packet}\" at least",
                frame.least_day
            );
            self.wrong(key, text);
        }
        if let Err(error) = scheduler.schedule(&Demand::zero(racks), &frame) {
            self.wrong("schedule.week", error.to_string());
        }
    }

    /// Checks that every day is long enough for one packet.
    fn days(&mut self, week: &Week) {
        let rate = self.experiment.circuit.as_ref().expect("a hybrid fabric has circuits").rate;
        let mtu = self.experiment.hosts.mtu;
        let packet = rate.tx_time(self.experiment.hosts.packet_on_link());
        let Some(short) = week.days().iter().position(|day| day.day < packet) else { return };
        let own = format!("schedule.days.{short}.day");
        let common = if self.places.has("schedule.week") { "schedule.week" } else { "schedule.day" };
        let path = if self.places.has(&own) { own } else { common.into() };
        let day = week.days()[short].day;
        self.wrong(&path, format!("{day} is shorter than one packet: {mtu} at {rate} take {packet}"));
    }

    fn advances(&mut self, week: &Week) {
        let marks = self.experiment.marks.as_ref().map(|marks| marks.advance);
        let voq = &self.experiment.voq;
        for (path, span) in [("voq.advance", voq.advance), ("voq.linger", Some(voq.linger)), ("marks.advance", marks)] {
            if let Some(span) = span.filter(|span| *span > week.length()) {
                self.wrong(path, format!("{span} is longer than the week, {}: use at most that", week.length()));
            }
        }
    }

    /// The series fits in memory.
    fn samples(&mut self, week: &Week) {
        let Some(every) = self.experiment.measure.series else { return };
        let fold = week.length().saturating_mul(u64::from(self.experiment.measure.fold));
        if fold.as_ps() / every.as_ps() > MOST_SAMPLES {
            let least = Span::from_ps(fold.as_ps().div_ceil(MOST_SAMPLES));
            let text =
                format!("{every} makes more than {MOST_SAMPLES} samples in a fold of {fold}: use at least {least}");
            self.wrong("measure.series", text);
        }
    }
}

/// The scheduler of a computed schedule, and the frame of each of its weeks.
fn frame(experiment: &Experiment) -> Option<(Scheduler, Frame)> {
    let (scheduler, computed) = experiment.schedule.as_ref()?.computed()?;
    let (circuit, packet) = (experiment.circuit.as_ref()?.rate, experiment.packet.as_ref()?.rate);
    let least_day = computed.least_day.unwrap_or(computed.night);
    Some((scheduler, Frame { week: computed.week, night: computed.night, least_day, circuit, packet }))
}
