//! What a run has shown of its flows, its measured pair, QCN and its Linux hosts.

use super::reasons::no_notification;
use crate::run::{Counters, LinuxCounters, ProgramEnd};
use crate::spec::{HostKind, Linux, Spec};
use firstlight_linux::Frames;
use firstlight_sim::{HybridConfig, MeterReport, QcnReport};
use firstlight_units::Span;

pub(super) fn pair(spec: &Spec, hybrid: &HybridConfig, meter: &MeterReport, notes: &mut Vec<String>) {
    let Some((src, dst)) = spec.measure.pair else { return };
    if meter.circuit.packets + meter.packet.packets == 0 {
        notes.push(format!("the measured pair {src}->{dst} had no data traffic"));
    } else if meter.circuit.packets == 0 && !hybrid.week.time_of(src, dst).is_zero() {
        notes.push(format!("no packet of the measured pair {src}->{dst} used its circuit"));
    }
}

/// QCN that was silent, or whose changes were too many to be kept.
pub(super) fn qcn(spec: &Spec, report: &QcnReport, notes: &mut Vec<String>) {
    if let Some(why) = no_notification(spec, report) {
        notes.push(format!("[qcn], and no notification: {why}"));
    }
    let (kept, changes) = (report.kept.len() as u64, report.changes);
    if spec.measure.rate_limiters && kept < changes {
        notes.push(format!("table rate_limiters has {kept} of {changes} changes: the first of each host"));
    }
}

pub(super) fn flows(spec: &Spec, counters: &Counters, notes: &mut Vec<String>) {
    let rows = &counters.flows;
    let begun = |start: Span| start < counters.elapsed;
    let silent = rows.iter().filter(|flow| flow.bytes_acked == 0 && begun(spec.own_time(flow.start)));
    say(notes, silent.count(), rows.len(), "never had data acknowledged");
    let lost_syns = rows.iter().filter(|flow| flow.sender.syn_retransmits + flow.receiver.syn_retransmits > 0);
    say(notes, lost_syns.count(), rows.len(), "had to repeat a SYN or SYN-ACK");
    let window = spec.tcp.receive_window.get();
    let simulated = rows.iter().zip(&spec.flows).filter(|(_, flow)| flow.hosts == HostKind::Simulated);
    let limited = simulated.filter(|(row, _)| u64::from(row.cwnd) * u64::from(spec.tcp.mss()) >= window);
    say(notes, limited.count(), rows.len(), "ended with a congestion window at least as large as tcp.receive_window");
    let sized = rows.iter().filter(|flow| flow.size.is_some()).count();
    let waiting = counters.jobs.iter().filter(|job| job.finish.is_none()).count();
    if waiting > 0 {
        notes.push(format!("{waiting} of {} jobs were not complete at the end, and have no time", counters.jobs.len()));
    }
    say(notes, counters.unfinished, sized, "of a given size were not complete at the end, and have no completion time");
}

/// Programs that did not do their work, and frames that the fabric does not know.
pub(super) fn linux(hosts: &Linux, told: &LinuxCounters, notes: &mut Vec<String>) {
    for (index, program) in hosts.programs.iter().enumerate() {
        let (name, host) = (&program.name, program.on.0);
        match told.ended.get(index).copied().flatten() {
            Some(ProgramEnd { code, .. }) if code != 0 => {
                notes.push(format!("program {name} on host{host} ended with exit code {code}: see its output"));
            }
            None if !program.server => notes.push(format!("program {name} on host{host} had not ended at the end")),
            _ => {}
        }
    }
    let Frames { malformed, elsewhere, .. } = told.frames;
    if malformed > 0 {
        notes.push(format!("{malformed} frames of Linux hosts had broken headers and were dropped"));
    }
    if elsewhere > 0 {
        notes.push(format!(
            "{elsewhere} packets of Linux hosts were for an address that none of them has (broadcast, multicast, a \
             simulated host) and were dropped"
        ));
    }
}

fn say(notes: &mut Vec<String>, some: usize, all: usize, what: &str) {
    if some > 0 {
        notes.push(format!("{some} of {all} flows {what}"));
    }
}
