//! Warnings on a run: its flows, its measured pair, QCN and its Linux hosts.

use super::reasons::no_notification;
use crate::run::{Counters, LinuxCounters, ProgramEnd};
use firstlight_linux::Frames;
use firstlight_sim::{FlowReport, HybridConfig, MeterReport, QcnReport};
use firstlight_spec::{HostKind, Linux, Spec};
use firstlight_units::Span;

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
    if spec.measure.rate_limiters && kept < changes {
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
    let window = spec.tcp.receive_window.get();
    let simulated = rows.iter().zip(&spec.flows).filter(|(_, flow)| flow.hosts == HostKind::Simulated);
    let limited = simulated.filter(|(row, _)| u64::from(row.cwnd) * u64::from(spec.tcp.mss()) >= window);
    say(notes, limited.count(), rows.len(), "ended with a congestion window at least as large as tcp.receive_window");
    let sized = rows.iter().filter(|flow| flow.size.is_some()).count();
    let jobs = spec.jobs.iter().zip(&counters.jobs).filter(|(job, _)| job.flows.is_empty());
    let waiting = jobs.clone().filter(|(_, report)| report.finish.is_none()).count();
    if waiting > 0 {
        notes.push(format!("{waiting} of {} jobs were not complete at the end and have no duration", jobs.count()));
    }
    say(notes, counters.unfinished, sized, "of a given size were not complete at the end and have no completion time");
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
