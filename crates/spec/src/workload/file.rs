//! Flows from a file: a flow list, or a connection matrix of csg-htsim. Connections that fire triggers or wait for them
//! are one job; each of them is one message.

use super::message_graph::{limit, order};
use super::{Expansion, FlowKeys, Job, SharedKeys, Workload, after};
use crate::error::Problem;
use crate::expander::{Expander, Flow, HostPair, MOST_FLOWS};
use firstlight_formats::{ImportError, ListedFlow, connections, flows};
use firstlight_messages::{MessageConfig, Messages};
use firstlight_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A list of flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowFile {
    /// Keys of every workload of flows.
    #[serde(flatten)]
    pub shared: FlowKeys,
    /// The list, its path relative to the experiment's: a flow list as HPCC's ns-3 reads it or, if its name ends in
    /// `.cm`, a connection matrix of csg-htsim.
    #[schemars(extend("examples" = ["flows.txt"]))]
    pub file: String,
    /// How many flows: the first ones of the list.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-of" = "flows", "x-without" = "all"))]
    pub flows: Option<u32>,
}

impl Workload for FlowFile {
    fn keys(&self) -> &dyn SharedKeys {
        &self.shared
    }

    /// The flows of the file, in its order.
    fn expand(&self, expander: &Expander<'_>) -> Result<Expansion, Box<Problem>> {
        let (path, text) = expander.read_file("file", &self.file)?;
        let matrix = Path::new(&path).extension().is_some_and(|extension| extension == "cm");
        let read = if matrix { connections::read } else { flows::read };
        let listed =
            read(&text, &path, &expander.directory.numbers).map_err(|error| expander.imported("file", error))?;
        let asked = self.flows.map(|flows| flows as usize);
        let triggers = listed.iter().any(|flow| flow.trigger.is_some());
        if triggers && asked.is_some_and(|asked| asked < listed.len()) {
            let text = "connections of the list wait for each other, so that all are needed: take this out";
            return Err(expander.problem("flows", text));
        }
        let dependencies = listed.iter().filter_map(|flow| Some(flow.trigger.as_ref()?.flows.len() as u64)).sum();
        limit(expander, "file", listed.len().min(MOST_FLOWS) as u64, dependencies)?;
        let most = if triggers { listed.len() } else { asked.unwrap_or(MOST_FLOWS + 1) };
        let listed = &listed[..listed.len().min(most)];
        let pairs: Vec<HostPair> = listed.iter().map(|flow| (flow.src.index(), flow.dst.index())).collect();
        let mut flows = expander.between(&self.shared.connections, self.shared.common.class, &pairs)?;
        expander.starts(self.shared.common.start, Span::ZERO)?;
        for (flow, listed) in flows.iter_mut().zip(listed) {
            let ListedFlow { size, start, class, .. } = listed;
            flow.start = after(*start, self.shared.common.start, 1);
            if flow.start >= expander.duration() {
                let problem = format!(
                    "the flow would start at {}, after the run's end: use a longer duration, or fewer flows",
                    flow.start
                );
                return Err(wrong(expander, &path, listed, problem));
            }
            flow.size = *size;
            if let (Some(class), None) = (class, self.shared.common.class) {
                flow.class = *class;
            }
        }
        let mut expansion = Expansion { flows, asked, ..Expansion::default() };
        if triggers {
            expansion.jobs = vec![Job::of_messages(expander, &self.shared.connections, triggered_bytes(listed))];
            expansion.messages = messages(expander, &path, listed, &mut expansion.flows)?;
        }
        Ok(expansion)
    }
}

/// Something is wrong with a flow of the list.
fn wrong(expander: &Expander<'_>, path: &str, flow: &ListedFlow, problem: String) -> Box<Problem> {
    let (file, (line, column)) = (path.to_string(), flow.place);
    expander.imported("file", ImportError { file, line, column, problem })
}

/// Which flows fire triggers or wait for them.
fn takes_part(listed: &[ListedFlow]) -> Vec<bool> {
    let mut part: Vec<bool> = listed.iter().map(|flow| flow.trigger.is_some()).collect();
    for trigger in listed.iter().filter_map(|flow| flow.trigger.as_ref()) {
        trigger.flows.iter().for_each(|flow| part[*flow as usize] = true);
    }
    part
}

/// Bytes of the flows that fire triggers or wait for them.
fn triggered_bytes(listed: &[ListedFlow]) -> u64 {
    let part = listed.iter().zip(takes_part(listed)).filter(|(_, part)| *part);
    part.filter_map(|(flow, _)| flow.size).map(Bytes::get).fold(0, u64::saturating_add)
}

/// The messages of the flows that fire triggers or wait for them: one each. All are one job.
fn messages(
    expander: &Expander<'_>,
    path: &str,
    listed: &[ListedFlow],
    flows: &mut [Flow],
) -> Result<Messages, Box<Problem>> {
    let part = takes_part(listed);
    let trigger = |flow: u32| listed[flow as usize].trigger.as_ref();
    let fired = |flow| trigger(flow).map_or(&[][..], |trigger| &trigger.flows);
    let enough = |flow| trigger(flow).map(|trigger| trigger.enough);
    let order = order(listed.len() as u32, fired, enough).map_err(|stuck| {
        let problem = "the connection waits for itself, by the triggers before it: take out one of these".into();
        wrong(expander, path, &listed[stuck as usize], problem)
    })?;
    let order: Vec<u32> = order.into_iter().filter(|flow| part[*flow as usize]).collect();
    let mut numbers = vec![0; listed.len()];
    order.iter().enumerate().for_each(|(number, flow)| numbers[*flow as usize] = number as u32);
    let (mut messages, mut after) = (Messages::default(), vec![]);
    for &number in &order {
        let flow = &mut flows[number as usize];
        let bytes = flow.size.expect("the reader refuses triggers of flows without an end");
        let start = std::mem::take(&mut flow.start);
        flow.messages = 1;
        after.clear();
        after.extend(fired(number).iter().map(|other| numbers[*other as usize]));
        let waits = enough(number);
        let start = if waits.is_some() { Span::ZERO } else { start };
        messages.push(
            MessageConfig { flow: Some(number), bytes, start, enough: waits, ..MessageConfig::default() },
            &after,
        );
    }
    Ok(messages)
}
