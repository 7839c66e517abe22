//! Warnings on a run: its flows, its measured pair, QCN and its Linux hosts.

use super::reasons::no_notification;
use crate::run::{Counters, LinuxCounters, ProgramEnd};
use firstlight_linux::Frames;
use firstlight_sim::{FlowReport, HybridConfig, MeterReport, QcnReport};
use firstlight_spec::{Flow, HostKind, Linux, Spec};
use firstlight_units::{Span, Time};
use std::collections::BTreeMap;

pub(super) fn pair(spec: &Spec, hybrid: &HybridConfig, meter: &MeterReport, notes: &mut Vec<String>) {
    let Some((src, dst)) = spec.pair else { return };
    if meter.circuit.packets + meter.packet.packets == 0 {
        notes.push(format!("the measured pair {src}->{dst} had no data traffic"));
    } else if meter.circuit.packets == 0 && !hybrid.week.time_of(src, dst).is_zero() {
        notes.push(format!("no packet of the measured pair {src}->{dst} used its circuit"));
    }
}

/// Warns of QCN without notifications, and of more changes of rates than were recorded.
pub(super) fn qcn(spec: &Spec, report: &QcnReport, notes: &mut Vec<String>) {
    if let Some(why) = no_notification(spec, report) {
        notes.push(format!("[qcn] sent no notification: {why}"));
    }
    let (kept, changes) = (report.kept.len() as u64, report.changes);
    if spec.tables.measure.rate_limiters && kept < changes {
        notes.push(format!("table rate_limiters has only {kept} of {changes} changes, the first ones of each host"));
    }
}

pub(super) fn flows(spec: &Spec, counters: &Counters, notes: &mut Vec<String>) {
    let rows = &counters.flows;
    let begun = |start: Span| start < counters.elapsed;
    let unheard = |flow: &FlowReport| flow.bytes_acked == 0 && flow.finish.is_none();
    let silent = rows.iter().filter(|flow| unheard(flow) && begun(spec.own_time(flow.start)));
    say(notes, silent.count(), rows.len(), "never had data acknowledged");
    let lost_syns = rows.iter().filter(|flow| flow.sender.syn_retransmits + flow.receiver.syn_retransmits > 0);
    say(notes, lost_syns.count(), rows.len(), "retransmitted a SYN or SYN-ACK");
    let window = spec.tables.tcp.tcp.receive_window.get();
    let simulated = rows.iter().zip(&spec.flows).filter(|(_, flow)| flow.hosts == HostKind::Simulated);
    let limited = simulated.filter(|(row, _)| u64::from(row.cwnd) * u64::from(spec.tables.tcp.tcp.mss()) >= window);
    say(notes, limited.count(), rows.len(), "ended with a congestion window at least as large as tcp.receive_window");
    let sized = rows.iter().filter(|flow| flow.size.is_some()).count();
    let jobs = spec.jobs.iter().zip(&counters.jobs).filter(|(job, _)| job.flows.is_empty());
    let waiting = jobs.clone().filter(|(_, report)| report.finish.is_none()).count();
    if waiting > 0 {
        notes.push(format!("{waiting} of {} jobs were not complete at the end and have no duration", jobs.count()));
    }
    say(notes, counters.unfinished, sized, "of a given size were not complete at the end and have no completion time");
}

/// Fewer long flows to a host are no crowd.
const CROWD: usize = 4;
/// Jain's index below which a crowd is unfair. Equal TCP flows through one queue that drops have 0.8 and more over
/// times that are long against their round trips, where hosts have jitter.
const UNFAIR: f64 = 0.5;

/// Warns of equal flows that lock each other out at a queue that drops: the phase effect of hosts without noise.
pub(super) fn lockout(spec: &Spec, counters: &Counters, notes: &mut Vec<String>) {
    if spec.network.interface().jitter.is_some() || counters.totals.dropped == 0 {
        return;
    }
    let half = counters.elapsed / 2;
    let long = |flow: &Flow, report: &FlowReport| {
        let stopped = flow.stop.is_some_and(|stop| stop < counters.elapsed);
        report.finish.is_none() && !stopped && flow.start < half && report.start < Time::MAX
    };
    let mut crowds: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for (flow, report) in spec.flows.iter().zip(&counters.flows).filter(|(flow, report)| long(flow, report)) {
        let simulated = flow.hosts == HostKind::Simulated;
        let path = (flow.dst, flow.class, simulated, flow.cc.name(), spec.network.host_rate(flow.src).as_bps());
        let time = counters.elapsed - flow.start;
        crowds.entry(path).or_default().push(report.bytes_acked as f64 / time.as_secs_f64());
    }
    for ((dst, _, _, cc, _), rates) in crowds {
        let sum: f64 = rates.iter().sum();
        let jain = sum * sum / (rates.len() as f64 * rates.iter().map(|rate| rate * rate).sum::<f64>());
        if rates.len() >= CROWD && jain < UNFAIR {
            notes.push(format!(
                "{} equal {cc} flows to host{} share its link with Jain's index {jain:.2}: hosts without noise may \
                 lock each other out of a queue that drops (phase effect); see what jitter changes, for example \
                 hosts.jitter = {{ kind = \"exponential\", mean = \"1us\" }}",
                rates.len(),
                dst.0
            ));
        }
    }
}

/// Warns of programs that failed or still ran, and of frames that the fabric dropped.
pub(super) fn linux(hosts: &Linux, reported: &LinuxCounters, notes: &mut Vec<String>) {
    for (index, program) in hosts.programs.iter().enumerate() {
        let (name, host) = (&program.name, program.on.0);
        match reported.ended.get(index).copied().flatten() {
            Some(ProgramEnd { code, .. }) if code != 0 => {
                notes.push(format!("program {name} on host{host} ended with exit code {code}: see its output"));
            }
            None if !program.server => notes.push(format!(
                "program {name} on host{host} still ran at the end: set server = true if it need not end"
            )),
            _ => {}
        }
    }
    let Frames { malformed, elsewhere, .. } = reported.frames;
    if malformed > 0 {
        notes.push(format!("{malformed} frames of Linux hosts were dropped: their headers are broken"));
    }
    if elsewhere > 0 {
        notes.push(format!(
            "{elsewhere} packets of Linux hosts were dropped: their destination is an address of no Linux host \
             (broadcast, multicast, a simulated host)"
        ));
    }
}

fn say(notes: &mut Vec<String>, some: usize, all: usize, what: &str) {
    if some > 0 {
        notes.push(format!("{some} of {all} flows {what}"));
    }
}
