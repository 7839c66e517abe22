//! Messages: so many bytes that are written to a flow's connection when other messages are complete.
//!
//! What an application does with its connections is a graph of messages: a chunk is forwarded once it has come, a reply
//! follows its request after some computation. A flow that has messages connects when its first one is due, stays open
//! between them, sends them in the order in which they become due, and closes after the last. A message is complete when
//! its receiver has it in order. One without a flow takes no network: it is a computation, or a point where others meet.
//!
//! A message is *ready* when its `start` is reached and all that it comes after are complete; it is due its `delay` later.

use crate::config::ConfigError;
use crate::flow::FlowConfig;
use firstlight_units::{Bytes, Span, Time};

/// One message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageConfig {
    /// The flow that carries it; none for what takes no network.
    pub flow: Option<u32>,
    /// How much; 0 without a flow.
    pub bytes: Bytes,
    /// It is not ready before this moment of the fabric's own time.
    pub start: Span,
    /// From ready to due, in the fabric's own time: a computation.
    pub delay: Span,
    /// The job that it is a part of. Jobs are numbered from 0.
    pub job: u32,
}

/// Messages, each after none but earlier ones, so that no circle can be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    pub(crate) list: Vec<MessageConfig>,
    /// What all of them come after, one after another,
    pub(crate) after: Vec<u32>,
    /// and where those of each end.
    pub(crate) ends: Vec<u32>,
}

impl Messages {
    /// Adds a message that comes after others; tells its number, counted from 0.
    pub fn push(&mut self, message: MessageConfig, after: &[u32]) -> u32 {
        self.list.push(message);
        self.after.extend_from_slice(after);
        self.ends.push(self.after.len() as u32);
        (self.list.len() - 1) as u32
    }

    /// Adds others, which count flows and jobs from these.
    pub fn append(&mut self, others: &Messages, first_flow: u32, first_job: u32) {
        let first = self.list.len() as u32;
        let mut after = vec![];
        for (index, message) in others.list.iter().enumerate() {
            after.clear();
            after.extend(others.after(index).iter().map(|other| other + first));
            let flow = message.flow.map(|flow| flow + first_flow);
            self.push(MessageConfig { flow, job: message.job + first_job, ..*message }, &after);
        }
    }

    /// All of them, by number.
    pub fn list(&self) -> &[MessageConfig] {
        &self.list
    }

    /// What a message comes after.
    pub fn after(&self, index: usize) -> &[u32] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.after[start as usize..self.ends[index] as usize]
    }

    /// Checks them against the flows of a world.
    pub(crate) fn check(&self, flows: &[FlowConfig]) -> Result<(), ConfigError> {
        let mut bytes = vec![0u64; flows.len()];
        for (index, message) in self.list.iter().enumerate() {
            let wrong = |problem: String| Err(ConfigError::Message { index, problem });
            if let Some(other) = self.after(index).iter().find(|other| **other as usize >= index) {
                return wrong(format!("it comes after message {other}: name an earlier one"));
            }
            let (flow, empty) = (message.flow, message.bytes == Bytes::new(0));
            match flow.map(|flow| bytes.get_mut(flow as usize)) {
                Some(None) => return wrong(format!("there is no flow {}", flow.unwrap_or_default())),
                Some(Some(_)) if empty => return wrong("it has nothing to send".into()),
                Some(Some(sum)) => *sum = sum.saturating_add(message.bytes.get()),
                None if !empty => return wrong("it has bytes and no flow to carry them".into()),
                None => {}
            }
        }
        let carried = |index: usize| bytes[index] > 0;
        (0..flows.len()).filter(|index| carried(*index)).try_for_each(|index| {
            check_flow(&flows[index], bytes[index]).map_err(|problem| ConfigError::Flow { index, problem })
        })
    }
}

/// A flow whose messages have so many bytes.
fn check_flow(flow: &FlowConfig, bytes: u64) -> Result<(), String> {
    if flow.size != Some(Bytes::new(bytes)) {
        return Err(format!("its size is not that of its messages, {bytes} B"));
    }
    if flow.start != Span::ZERO || flow.jitter != Span::ZERO {
        return Err("it has a start and messages, which decide when it connects: keep one".into());
    }
    Ok(())
}

/// What became of a job. Times are on the hosts' clock: divide by the time scale for the fabric's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobReport {
    /// When its first message was ready; `None` while none was.
    pub start: Option<Time>,
    /// When its last message was complete.
    pub finish: Option<Time>,
    /// Bytes of its messages.
    pub bytes: Bytes,
    /// How many messages it has.
    pub messages: u32,
}
