//! The messages of an application, and which of them depend on which.
//!
//! An application's use of its connections is a graph of messages: a chunk is forwarded once it has arrived, a reply
//! follows its request after some computation. A flow that has messages connects when its first message is due, stays
//! open between messages, sends them in the order in which they become due, and closes after the last one. A message
//! is complete when its receiver has all of its bytes in order. A message without a flow takes no network: it is a
//! computation, or a point where several messages meet.
//!
//! A message is *ready* when its `start` is reached and all messages that it depends on are complete, or so many of
//! them as are `enough`. It is *due* its `delay` after that.

use firstlight_units::{Bytes, Span};

/// One message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageConfig {
    /// The flow that carries the message; `None` for a message that takes no network.
    pub flow: Option<u32>,
    /// Size of the message; 0 without a flow.
    pub bytes: Bytes,
    /// The message is not ready before this time since the start of the run, in the fabric's own time.
    pub start: Span,
    /// Time from ready to due, in the fabric's own time: a computation.
    pub delay: Span,
    /// Number of the job that the message is a part of. Jobs are numbered from 0.
    pub job: u32,
    /// The message is ready once this number of the messages that it depends on are complete, whichever come first;
    /// `None`: all. Such a message has no `start`.
    pub enough: Option<u32>,
}

/// Messages and their dependencies. A message depends on earlier ones only, so that there is no cycle; a message with
/// `enough` depends on at least that number of earlier ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    list: Vec<MessageConfig>,
    /// The dependencies of all messages, one message after another.
    after: Vec<u32>,
    /// Where in `after` the dependencies of each message end.
    ends: Vec<u32>,
}

/// Why a message is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("message {index}: {problem}")]
pub struct MessageError {
    /// Number of the message.
    pub index: usize,
    /// The problem, and what would be right.
    pub problem: String,
}

impl Messages {
    /// Adds a message that depends on the messages `after`. Returns its number, counted from 0.
    pub fn push(&mut self, message: MessageConfig, after: &[u32]) -> u32 {
        self.list.push(message);
        self.after.extend_from_slice(after);
        self.ends.push(self.after.len() as u32);
        (self.list.len() - 1) as u32
    }

    /// Adds all messages of `others`, whose flows and jobs become those from `first_flow` and `first_job` on.
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

    /// All messages, by number.
    pub fn list(&self) -> &[MessageConfig] {
        &self.list
    }

    /// Numbers of the messages that message `index` depends on.
    pub fn after(&self, index: usize) -> &[u32] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.after[start as usize..self.ends[index] as usize]
    }

    /// The dependencies of all messages, one message after another.
    pub(crate) fn all_after(&self) -> &[u32] {
        &self.after
    }

    /// Checks the messages of a run with `flows` flows. Returns the bytes that each flow's messages have.
    ///
    /// # Errors
    /// When a message depends on itself or a later one without need, names a flow that does not exist, or has bytes
    /// without a flow or a flow without bytes.
    pub fn check(&self, flows: usize) -> Result<Vec<u64>, MessageError> {
        let mut bytes = vec![0u64; flows];
        for (index, message) in self.list.iter().enumerate() {
            let wrong = |problem: String| Err(MessageError { index, problem });
            let later = self.after(index).iter().filter(|other| **other as usize >= index);
            match message.enough {
                None => {
                    if let Some(other) = later.min() {
                        return wrong(format!("it comes after message {other}: name an earlier one"));
                    }
                }
                Some(enough) => {
                    let earlier = self.after(index).len() - later.clone().count();
                    if enough == 0 || enough as usize > earlier || message.start > Span::ZERO {
                        return wrong(format!(
                            "{enough} of {earlier} earlier messages are not enough, or it has a start"
                        ));
                    }
                    if let Some(other) = later.max().filter(|other| **other as usize >= self.list.len()) {
                        return wrong(format!("there is no message {other}"));
                    }
                }
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
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(flow: u32, bytes: u64, job: u32) -> MessageConfig {
        MessageConfig { flow: Some(flow), bytes: Bytes::new(bytes), job, ..MessageConfig::default() }
    }

    fn graph(list: &[(MessageConfig, &[u32])]) -> Messages {
        let mut messages = Messages::default();
        list.iter().for_each(|(message, after)| _ = messages.push(*message, after));
        messages
    }

    #[test]
    fn appended_messages_count_from_those_before() {
        let one = graph(&[(on(0, 5, 0), &[]), (on(1, 6, 1), &[0])]);
        let mut both = one.clone();
        both.append(&one, 2, 7);
        assert_eq!(both.list()[3], on(3, 6, 8));
        assert_eq!((both.after(1), both.after(2), both.after(3)), (&[0][..], &[][..], &[2][..]));
        assert_eq!(both.check(4), Ok(vec![5, 6, 5, 6]));
    }

    #[test]
    fn wrong_messages_are_refused() {
        let error = |list: &[(MessageConfig, &[u32])]| graph(list).check(1).unwrap_err().to_string();
        let local = MessageConfig::default();
        let later = "message 1: it comes after message 1: name an earlier one";
        assert_eq!(error(&[(on(0, 100, 0), &[]), (local, &[1])]), later);
        assert_eq!(error(&[(on(1, 100, 0), &[])]), "message 0: there is no flow 1");
        assert_eq!(error(&[(on(0, 0, 0), &[])]), "message 0: it has nothing to send");
        let some = |enough, start| MessageConfig { enough: Some(enough), start, ..local };
        let few = |enough| format!("message 1: {enough} of 1 earlier messages are not enough, or it has a start");
        assert_eq!(error(&[(local, &[]), (some(2, Span::ZERO), &[0, 1])]), few(2));
        assert_eq!(error(&[(local, &[]), (some(0, Span::ZERO), &[0])]), few(0));
        assert_eq!(error(&[(local, &[]), (some(1, Span::from_us(1)), &[0])]), few(1));
        assert_eq!(error(&[(local, &[]), (some(1, Span::ZERO), &[0, 2])]), "message 1: there is no message 2");
        let lost = MessageConfig { bytes: Bytes::new(9), ..local };
        assert_eq!(error(&[(lost, &[])]), "message 0: it has bytes and no flow to carry them");
    }
}
