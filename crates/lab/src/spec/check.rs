//! Values that are right each by itself and wrong together.

use super::effect::Setting;
use super::error::{Problem, SpecError};
use super::keys::{Key, Kind};
use super::network;
use super::registry::{MOST_HOSTS, keys};
use super::values::Values;
use super::{pfc, qcn};
use firstlight_circuits::{Day, Demand, Matching, RackId, Week, WeekError};
use firstlight_transport::ConfigError;
use firstlight_units::{Bytes, Rate, Span};

/// Longest run on the engine's clock, which ends after 213 days.
const LONGEST_RUN: Span = Span::from_secs(100 * 86_400);
/// Longest of all other spans there.
const LONGEST_SPAN: Span = Span::from_secs(10 * 86_400);
/// Longest serialization of one packet there.
const LONGEST_PACKET: Span = Span::from_secs(1);

/// Below this a lost packet would be sent again for ever, at every moment.
const SHORTEST_RTO_MAX: Span = Span::from_ms(1);
/// Most samples of a series.
const MOST_SAMPLES: u64 = 1_000_000;
/// Most samples of all watched queues, and numbers in all intervals of all flows.
const MOST_CELLS: u64 = 50_000_000;

/// Checks the network; gives the week of a hybrid fabric.
pub(crate) fn values(values: &Values, setting: &Setting) -> Result<Option<Week>, SpecError> {
    let mut check = Check { values, problems: vec![] };
    check.run_length();
    check.loss();
    check.tcp();
    if setting.uses("retcp") {
        check.one_meaning_of_ece();
    }
    check.clock();
    check.slowest_packet();
    check.qcn();
    check.queue_samples();
    let hybrid = values.text("fabric.kind") == "hybrid";
    let week = if hybrid { check.hybrid() } else { None };
    if check.problems.is_empty() { Ok(week) } else { Err(SpecError { problems: check.problems }) }
}

/// What is wrong with a link of that rate, if anything: one packet takes for ever.
pub(super) fn too_slow(values: &Values, rate: Rate) -> Option<String> {
    let (mtu, scale) = (values.size("hosts.mtu"), values.integer("time_scale"));
    let least = (u128::from(mtu.get()) * 8 * u128::from(scale)) as u64;
    let text = || {
        format!(
            "at {rate} one packet of {mtu} takes longer than {LONGEST_PACKET}, time_scale included: use at least {least}bps"
        )
    };
    (rate.as_bps() < least).then(text)
}

/// Checks that the intervals of `measure.throughput` with so many flows fit in memory.
pub(super) fn intervals(values: &Values, flows: usize) -> Result<(), SpecError> {
    let Some(every) = values.span_opt("measure.throughput") else { return Ok(()) };
    let measured = values.span("duration").saturating_sub(values.span("warmup"));
    let most = MOST_CELLS / flows.max(1) as u64;
    if measured.as_ps() / every.as_ps() <= most {
        return Ok(());
    }
    let text = format!("{every} makes too many intervals of {measured} for {flows} flows: use at most {most} of them");
    Err(values.problem("measure.throughput", text).into())
}

struct Check<'a> {
    values: &'a Values,
    problems: Vec<Problem>,
}

impl Check<'_> {
    fn wrong(&mut self, path: &str, text: impl Into<String>) {
        self.problems.push(self.values.problem(path, text));
    }

    fn scale(&self) -> u64 {
        self.values.integer("time_scale")
    }

    fn run_length(&mut self) {
        let (warmup, duration) = (self.values.span("warmup"), self.values.span("duration"));
        if warmup >= duration {
            self.wrong("warmup", format!("{warmup} leaves nothing to measure of a duration of {duration}: use less"));
        }
    }

    fn loss(&mut self) {
        if self.values.number("hosts.loss") >= 1.0 {
            self.wrong("hosts.loss", "at 1 nothing ever arrives: use less than 1");
        }
    }

    fn tcp(&mut self) {
        let [most, least, initial] = ["tcp.rto_max", "tcp.rto_min", "tcp.rto_initial"].map(|key| self.values.span(key));
        let floor = least.max(initial).max(SHORTEST_RTO_MAX);
        if most < floor {
            let text =
                format!("{most} is too short: use at least rto_min, rto_initial and {SHORTEST_RTO_MAX}, here {floor}");
            self.wrong("tcp.rto_max", text);
        }
        match super::tcp(self.values).validate() {
            Err(error @ ConfigError::ReceiveWindow(_)) => self.wrong("tcp.receive_window", error.to_string()),
            Err(error) => self.wrong("tcp", error.to_string()),
            Ok(()) => {}
        }
    }

    /// To reTCP ECE is a circuit; a threshold's marks come back as ECE too.
    fn one_meaning_of_ece(&mut self) {
        let there = |path: &String| self.values.has(path) || self.values.tables.contains_key(path);
        let tables = (0..self.values.count("switch.classes")).map(|class| format!("switch.classes.{class}"));
        let marking = |table: String| ["ecn", "red", "phantom"].map(|key| format!("{table}.{key}"));
        let marking = std::iter::once("switch".to_string()).chain(tables).flat_map(marking);
        let all = ["voq.ecn_small", "voq.ecn_large", "voq.red"].map(String::from).into_iter().chain(marking);
        for path in all.filter(there).collect::<Vec<_>>() {
            self.wrong(
                &path,
                "the receivers of marked packets set ECE, which retcp takes for a circuit: take it out, or use no retcp",
            );
        }
    }

    /// No span leaves the engine's clock when it is stretched.
    fn clock(&mut self) {
        let scale = self.scale();
        let times: Vec<String> = self
            .values
            .given
            .iter()
            .filter(|(_, given)| matches!(given.key.kind, Kind::Time { .. }))
            .map(|(path, _)| path.clone())
            .collect();
        for path in times {
            let span = self.values.span(&path);
            let hosts = ["tcp.", "dx.", "timely.", "swift."].iter().any(|table| path.starts_with(table));
            let by = if hosts { 1 } else { scale };
            let most = if matches!(path.as_str(), "duration" | "warmup") { LONGEST_RUN } else { LONGEST_SPAN };
            if span > most / by {
                let stretched = if by > 1 { format!(" times time_scale = {by}") } else { String::new() };
                let days = most.as_ps() / Span::from_secs(86_400).as_ps();
                self.wrong(
                    &path,
                    format!("{span}{stretched} is too long for the engine's clock: use at most {days} days"),
                );
            }
        }
    }

    /// No link is so slow that one packet takes for ever.
    fn slowest_packet(&mut self) {
        // A limited flow's rate is none of a link, and its timer raises it.
        let link = |key: &&Key| key.kind == Kind::Rate && !key.path.starts_with("qcn.");
        let rates = keys().iter().filter(link).filter(|key| self.values.has(key.path));
        for key in rates.collect::<Vec<_>>() {
            if let Some(text) = too_slow(self.values, self.values.rate(key.path)) {
                self.wrong(key.path, text);
            }
        }
    }

    fn qcn(&mut self) {
        let Some(config) = qcn::read(self.values) else { return };
        if let Err(error) = config.check() {
            self.wrong(error.parameter, error.problem);
        }
        let (least, link) = (config.min_rate, self.values.rate_opt("hosts.rate"));
        if let Some(link) = link.filter(|link| least >= *link) {
            let text =
                format!("{least} is no less than the hosts' links have, {link}: no flow would be limited; use less");
            self.wrong("qcn.min_rate", text);
        }
    }

    fn queue_samples(&mut self) {
        let Some(every) = self.values.span_opt("measure.queue_samples") else { return };
        let (duration, queues) = (self.values.span("duration"), self.values.texts("measure.queues").len() as u64);
        let most = MOST_CELLS / queues.max(1);
        if duration.as_ps() / every.as_ps() > most {
            let text = format!("{every} makes too many samples of {queues} queues in {duration}: use at most {most}");
            self.wrong("measure.queue_samples", text);
        }
    }

    fn hybrid(&mut self) -> Option<Week> {
        let racks = self.values.integer("fabric.racks");
        let hosts = racks * self.values.integer("fabric.hosts_per_rack");
        if hosts > MOST_HOSTS {
            self.wrong("fabric.hosts_per_rack", format!("{hosts} hosts in all are too many: use at most {MOST_HOSTS}"));
        }
        if !self.values.flag("packet.switched") && racks != 2 {
            self.wrong(
                "packet.switched",
                format!("a network without a switch joins two racks, not {racks}: use fabric.racks = 2 or take it out"),
            );
        }
        self.pair(racks);
        self.voq();
        let week = self.week(racks as usize);
        self.control(racks as usize);
        if let Some(week) = &week {
            self.days(week);
            self.advances(week);
            self.samples(week);
        }
        week
    }

    fn pair(&mut self, racks: u64) {
        let Some((src, dst)) = self.values.pair_opt("measure.pair") else { return };
        if let Some(rack) = [src, dst].into_iter().find(|rack| u64::from(*rack) >= racks) {
            self.wrong("measure.pair", format!("there is no rack {rack}: the fabric has racks 0 to {}", racks - 1));
        } else if src == dst {
            self.wrong("measure.pair", format!("[{src}, {dst}] is one rack, not a pair: write for example [0, 1]"));
        }
    }

    fn voq(&mut self) {
        if !self.values.has("voq.small") {
            let text = if !pfc::is_on(self.values) {
                "missing: write for example small = 1 in [voq]"
            } else if self.values.has("voq.large") {
                "missing: without a capacity there is nothing to enlarge; add it, or take out voq.large"
            } else {
                return;
            };
            return self.wrong("voq.small", text);
        }
        match (self.values.packets_opt("voq.large"), self.values.has("voq.advance")) {
            (Some(_), false) => {
                self.wrong("voq.large", "has no effect without voq.advance: add for example advance = \"600us\"")
            }
            (None, true) => self.wrong("voq.advance", "has no effect without voq.large: add for example large = 50"),
            (Some(large), true) if large < self.values.packets("voq.small") => {
                let small = self.values.packets("voq.small");
                self.wrong(
                    "voq.large",
                    format!("{large} packets are fewer than voq.small = {small}: use at least {small}"),
                );
            }
            _ => {}
        }
    }

    fn week(&mut self, racks: usize) -> Option<Week> {
        let night = self.values.span("schedule.night");
        let equal = || self.values.span("schedule.day");
        let (key, week) = match self.values.text("schedule.kind").as_str() {
            "strobe" => ("schedule.day", Week::strobe(racks, equal(), night)),
            "etalon" => {
                if racks != 3 {
                    self.wrong(
                        "fabric.racks",
                        format!("the etalon schedule is of 3 racks that stand for more, not of {racks}: use racks = 3"),
                    );
                    return None;
                }
                (
                    "schedule.stands_for",
                    Week::etalon(self.values.integer("schedule.stands_for") as usize, equal(), night),
                )
            }
            "list" => ("schedule.days", self.listed_week(racks, night)?),
            // The first week of a control loop.
            _ => ("schedule.week", Ok(Week::idle(racks, self.values.span("schedule.week")))),
        };
        week.map_err(|error| self.wrong(key, error.to_string())).ok()
    }

    /// A week has room for a schedule, and a day for a packet.
    fn control(&mut self, racks: usize) {
        let Some((control, frame)) = network::control(self.values) else { return };
        let packet = frame.circuit.tx_time(self.values.size("hosts.mtu"));
        if frame.least_day < packet {
            let key = if self.values.has("schedule.least_day") { "schedule.least_day" } else { "schedule.night" };
            let text = format!(
                "days of {} may be shorter than one packet, {packet}: use least_day = \"{packet}\" at least",
                frame.least_day
            );
            self.wrong(key, text);
        }
        if let Err(error) = control.scheduler.schedule(&Demand::zero(racks), &frame) {
            self.wrong("schedule.week", error.to_string());
        }
    }

    fn listed_week(&mut self, racks: usize, night: Span) -> Option<Result<Week, WeekError>> {
        let count = self.values.count("schedule.days");
        let mut days = vec![];
        for index in 0..count {
            let path = format!("schedule.days.{index}.matching");
            let pairs: Vec<_> = self.values.matching(&path).iter().map(|&(a, b)| (RackId(a), RackId(b))).collect();
            match Matching::new(racks, &pairs) {
                Ok(matching) => {
                    let own = self.values.span_opt(&format!("schedule.days.{index}.day"));
                    let day = own.unwrap_or_else(|| self.values.span("schedule.day"));
                    days.push(Day { night, day, matching });
                }
                Err(error) => self.wrong(&path, error.to_string()),
            }
        }
        (days.len() == count).then(|| Week::new(days))
    }

    /// Every day holds at least one packet.
    fn days(&mut self, week: &Week) {
        let rate = self.values.rate("circuit.rate");
        let mtu: Bytes = self.values.size("hosts.mtu");
        let packet = rate.tx_time(mtu);
        let Some(short) = week.days().iter().position(|day| day.day < packet) else { return };
        let own = format!("schedule.days.{short}.day");
        let common = if self.values.has("schedule.week") { "schedule.week" } else { "schedule.day" };
        let path = if self.values.has(&own) { own } else { common.into() };
        let day = week.days()[short].day;
        self.wrong(&path, format!("{day} is shorter than one packet: {mtu} at {rate} take {packet}"));
    }

    fn advances(&mut self, week: &Week) {
        for path in ["voq.advance", "marks.advance"] {
            let advance = self.values.has(path).then(|| self.values.span(path));
            if let Some(advance) = advance.filter(|advance| *advance > week.length()) {
                self.wrong(path, format!("{advance} is longer than the week, {}: use at most that", week.length()));
            }
        }
    }

    /// The series fits in memory.
    fn samples(&mut self, week: &Week) {
        let Some(every) = self.values.span_opt("measure.series") else { return };
        let fold = week.length().saturating_mul(self.values.integer("measure.fold"));
        if fold.as_ps() / every.as_ps() > MOST_SAMPLES {
            let least = Span::from_ps(fold.as_ps().div_ceil(MOST_SAMPLES));
            let text =
                format!("{every} makes more than {MOST_SAMPLES} samples in a fold of {fold}: use at least {least}");
            self.wrong("measure.series", text);
        }
    }
}
