//! Rules about flows that are left out: there are such flows, and nothing depends on them.

use crate::error::SpecError;
use crate::expander::Flow;
use crate::host_kind::HostKind;
use crate::places::Places;
use crate::tables::Experiment;

/// Checks the flows of `leave_out`.
pub(crate) fn left_out(experiment: &Experiment, places: &Places, flows: &[Flow]) -> Result<(), SpecError> {
    for number in experiment.leave_out.iter().flatten() {
        let problem = match flows.get(*number as usize) {
            None if flows.is_empty() => "there is no flow: take it out".into(),
            None => format!("there is no flow {number}: write one of 0 to {}", flows.len() - 1),
            Some(flow) if flow.messages > 0 => {
                format!("flow {number} carries messages, for which others may wait: leave out flows without messages")
            }
            Some(flow) if flow.hosts == HostKind::Linux => {
                format!("flow {number} has Linux hosts: leave out flows of simulated hosts")
            }
            Some(_) => continue,
        };
        return Err(places.problem("leave_out", problem).into());
    }
    Ok(())
}
