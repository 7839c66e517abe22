//! Rules between tables, about values that are valid by themselves and invalid together. Rules within one table are in
//! its struct's `check`.

mod circuits;
mod classes;
mod clock;
mod further_links;
mod leave_out;
mod lossless;
mod ports;
mod recording;

pub(crate) use clock::slow_links;
pub(crate) use further_links::further_links;
pub(crate) use leave_out::left_out;
pub(crate) use lossless::{adapters, lossless_hybrid, lossless_switches};
pub(crate) use ports::{port_names, port_of_name, special_ports};
pub(crate) use recording::{intervals, tcp_info_samples, watched_queues};

use crate::conditions::Conditions;
use crate::control::ecn_use;
use crate::error::{Problem, SpecError};
use crate::places::{Places, all_or};
use crate::tables::{Experiment, FabricTable, PauseKind};
use firstlight_circuits::Week;
use firstlight_transport::cc::{CcName, EcnUse};
use firstlight_transport::{CcConfig, EctSyn};
use serde_json::Value as Json;

/// Checks the rules that need no network. Returns the week of a hybrid fabric.
pub(crate) fn check(
    experiment: &Experiment,
    json: &Json,
    places: &Places,
    conditions: &Conditions<'_>,
) -> Result<Option<Week>, SpecError> {
    let own = experiment.check().into_iter().map(|error| places.setting("", error)).collect();
    let mut rules = Rules { experiment, json, places, problems: own };
    rules.run_length();
    rules.loss();
    rules.one_meaning_of_ece(conditions);
    rules.clock();
    rules.slowest_packet();
    rules.qcn();
    rules.shared_buffer();
    rules.weights();
    rules.classes_of_controllers(conditions);
    rules.least_window(conditions);
    rules.paced_window();
    rules.ect_on_syn(conditions);
    rules.own_controllers(conditions);
    rules.notices(conditions);
    let week = if let FabricTable::Hybrid(racks) = &experiment.fabric { rules.hybrid(racks) } else { None };
    all_or(rules.problems).map(|()| week)
}

/// Whether links can be paused.
fn is_paused(experiment: &Experiment) -> bool {
    experiment.pfc.as_ref().is_some_and(|pfc| pfc.kind != PauseKind::Off)
}

struct Rules<'a> {
    experiment: &'a Experiment,
    json: &'a Json,
    places: &'a Places,
    problems: Vec<Problem>,
}

impl Rules<'_> {
    fn wrong(&mut self, path: &str, text: impl Into<String>) {
        self.problems.push(self.places.problem(path, text));
    }

    fn run_length(&mut self) {
        let Experiment { warmup, duration, .. } = self.experiment;
        if warmup >= duration {
            self.wrong("warmup", format!("{warmup} leaves nothing to measure of a duration of {duration}: use less"));
        }
    }

    fn loss(&mut self) {
        if self.experiment.hosts.loss >= 1.0 {
            self.wrong("hosts.loss", "at 1 no packet arrives: use less than 1");
        }
    }

    /// Refuses queues that mark together with a controller to which ECE means something else.
    fn one_meaning_of_ece(&mut self, conditions: &Conditions<'_>) {
        let of_its_own = |cc: &CcName| ecn_use(&self.places.own, *cc) == Some(EcnUse::OwnMeaning);
        let Some(name) = conditions.controllers().find(of_its_own).map(CcName::as_str) else { return };
        let Experiment { voq, switch, .. } = self.experiment;
        let mut paths: Vec<String> = voq.marking().map(|key| format!("voq.{key}")).collect();
        paths.extend(switch.discipline.marking().map(|key| format!("switch.{key}")));
        for (class, table) in switch.classes.iter().enumerate() {
            paths.extend(table.discipline.marking().map(|key| format!("switch.classes.{class}.{key}")));
        }
        for (entry, table) in switch.ports.iter().enumerate() {
            paths.extend(table.discipline.marking().map(|key| format!("switch.ports.{entry}.{key}")));
        }
        let text = format!(
            "the receivers of marked packets set ECE, which {name} takes for a circuit: take it out, or use no {name}"
        );
        paths.iter().for_each(|path| self.wrong(path, text.clone()));
    }

    /// Checks that the least rate of QCN is below the rate of hosts' links, so that flows can be limited.
    fn qcn(&mut self) {
        let Some((qcn, link)) = self.experiment.interface.qcn.as_ref().zip(self.experiment.hosts.rate) else { return };
        let least = qcn.min_rate;
        if least >= link {
            let text = format!("{least} must be below the rate of the hosts' links ({link}): use less");
            self.wrong("qcn.min_rate", text);
        }
    }

    /// Checks that a shared buffer has room for a packet at some port.
    fn shared_buffer(&mut self) {
        let (alpha, mtu) = (self.experiment.switch.alpha, self.experiment.hosts.mtu);
        let Some(size) = self.experiment.switch.buffer else { return };
        if size.get() as f64 * alpha.min(1.0) < mtu.get() as f64 {
            let text = format!("{size} with alpha = {alpha} is too small for one packet ({mtu}) at any port: use more");
            self.wrong("switch.buffer", text);
        }
    }

    /// Refuses weights of classes that are paused one by one, by their priority.
    fn weights(&mut self) {
        let with = self.experiment.switch.classes.iter().position(|class| class.weight.is_some());
        if let Some(class) = with.filter(|_| is_paused(self.experiment)) {
            let text = "classes of lossless Ethernet have strict priorities: take the weights out, or [pfc]";
            self.wrong(&format!("switch.classes.{class}.weight"), text);
        }
    }

    /// Checks that the window's floor is that of some controller in use.
    fn least_window(&mut self, conditions: &Conditions<'_>) {
        const KEY: &str = "tcp.min_window";
        let has_own = |cc: &CcName| cc.simulated().and_then(CcConfig::from_name).is_some_and(|cc| cc.has_own_floor());
        let used: Vec<CcName> = conditions.controllers().collect();
        if self.places.has(KEY) && !used.is_empty() && used.iter().all(has_own) {
            let names: Vec<&str> = used.iter().map(|cc| cc.as_str()).collect();
            let have = if used.len() == 1 { "has a floor of its" } else { "have floors of their" };
            let text = format!("has no effect: {} {have} own; take it out", names.join(", "));
            self.wrong(KEY, text);
        }
    }

    /// Checks that a window that may fall below one packet may also fall to one.
    fn paced_window(&mut self) {
        let least = self.experiment.tcp.tcp.min_window;
        if self.experiment.cc.dctcp.paced_floor < 1.0 && least > 1 {
            let text = format!("has no effect: the window stays at tcp.min_window, here {least}; set that to 1");
            self.wrong("dctcp.paced_floor", text);
        }
    }

    /// Refuses users' shared objects and Python classes on Linux hosts, whose kernel cannot run them.
    fn own_controllers(&mut self, conditions: &Conditions<'_>) {
        if !conditions.linux() {
            return;
        }
        let text = "a control of your own runs where all hosts are simulated, and this experiment has Linux hosts: use \
                    another, or a kernel module";
        let flows = self.experiment.flows.iter().map(|flows| flows.connections.cc);
        let workloads = self.experiment.workload.iter().map(|workload| workload.get().keys().connections()?.cc);
        let of = |list: &'static str| move |(n, cc): (usize, Option<CcName>)| (format!("{list}.{n}.cc"), cc);
        let own = [("tcp.cc".into(), Some(self.experiment.tcp.cc))].into_iter();
        let hosts = self.experiment.linux.hosts.iter().map(|hosts| hosts.cc).enumerate().map(of("linux.hosts"));
        let flows = flows.enumerate().map(of("flows")).chain(workloads.enumerate().map(of("workload")));
        let is_own = |cc: CcName| self.places.own.iter().any(|own| own.name() == cc.as_str());
        let all = own.chain(flows).chain(hosts);
        let wrong: Vec<String> = all.filter(|(_, cc)| cc.is_some_and(is_own)).map(|(path, _)| path).collect();
        wrong.iter().for_each(|path| self.wrong(path, text));
    }

    /// Refuses notices together with Linux hosts, computed schedules or accounts.
    fn notices(&mut self, conditions: &Conditions<'_>) {
        if self.experiment.marks.as_ref().and_then(|marks| marks.notices()).is_none() {
            return;
        }
        let write = "write carrier = \"acks\"";
        if conditions.linux() {
            self.wrong(
                "marks.carrier",
                format!("a kernel gets no notices, and this experiment has Linux hosts: {write}"),
            );
        }
        if self.experiment.schedule.as_ref().is_some_and(|schedule| schedule.computed().is_some()) {
            self.wrong("marks.carrier", format!("notices are of a schedule that is not computed: {write}"));
        }
    }

    /// SYNs can be ECN-capable where connections negotiate ECN, and on Linux hosts where their kernel makes them so.
    fn ect_on_syn(&mut self, conditions: &Conditions<'_>) {
        const KEY: &str = "tcp.ect_syn";
        let Some(ect) = self.experiment.tcp.tcp.ect_syn else { return };
        let negotiates = |cc: CcName| {
            let ecn = ecn_use(&self.places.own, cc).unwrap_or(EcnUse::Classic);
            ecn == EcnUse::Precise || (ecn == EcnUse::Classic && self.experiment.tcp.tcp.ecn)
        };
        if !conditions.controllers().any(negotiates) {
            let text = "has no effect: no connection negotiates ECN; use dctcp, set tcp.ecn = true, or take it out";
            return self.wrong(KEY, text);
        }
        let of_kernel = |cc: &CcName| ecn_use(&[], *cc) == Some(EcnUse::Precise);
        let other = conditions.controllers().find(|cc| !of_kernel(cc) && negotiates(*cc));
        if let Some(other) = other.filter(|_| conditions.linux() && ect != EctSyn::None) {
            let text = format!(
                "a Linux kernel sets ECT on SYNs of dctcp alone, not of {}: let all that negotiate ECN use dctcp, or \
                 write \"none\"",
                other.as_str()
            );
            self.wrong(KEY, text);
        }
    }
}
