//! What the guest program tells the engine: each message is one write to the device `/dev/firstlight`.
//!
//! First byte: the kind; then the fields, little-endian; then what is left of the message. The engine stamps a message
//! with the virtual time at which it came.

/// Why a flow's state is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// A sample of the series.
    Series,
    /// The end of the warm-up.
    Warm,
    /// The end of the run.
    End,
}

/// A message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// The hosts are set up: the fabric's time begins now.
    Start,
    /// A flow's receiver has all of its bytes.
    FlowComplete {
        /// The flow's number in the experiment.
        flow: u32,
    },
    /// A flow's receiver has the earliest message on its way in order.
    MessageComplete {
        /// The flow's number in the experiment.
        flow: u32,
    },
    /// A flow's `struct tcp_info`, as getsockopt(TCP_INFO) gave it.
    FlowState {
        /// The flow's number in the experiment.
        flow: u32,
        /// At its sending end, or at the receiving one.
        sender: bool,
        /// Why.
        moment: Moment,
        /// The structure's bytes, as many as the kernel knows.
        info: &'a [u8],
    },
    /// A program has ended by itself.
    ProgramEnded {
        /// Its index in the plan.
        program: u32,
        /// Exit code; 128 and the signal's number for one that a signal ended.
        code: i32,
    },
    /// The guest cannot go on: why, as UTF-8.
    Failed(&'a [u8]),
    /// All that was to be done is done: the run ends now.
    Finish,
    /// All receivers have told what they have: an interval of the flows' throughput is over, or the first one begins.
    Interval,
}

/// Bytes that are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a message of {length} bytes and kind {kind:?} is none of the guest's")]
pub struct Malformed {
    /// How long it is.
    pub length: usize,
    /// Its first byte.
    pub kind: Option<u8>,
}

impl<'a> Message<'a> {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        match *self {
            Message::Start => vec![0],
            Message::FlowComplete { flow } => [&[1][..], &flow.to_le_bytes()].concat(),
            Message::FlowState { flow, sender, moment, info } => {
                [&[2][..], &flow.to_le_bytes(), &[u8::from(sender), moment as u8], info].concat()
            }
            Message::ProgramEnded { program, code } => [&[3][..], &program.to_le_bytes(), &code.to_le_bytes()].concat(),
            Message::Failed(why) => [&[4][..], why].concat(),
            Message::Finish => vec![5],
            Message::MessageComplete { flow } => [&[6][..], &flow.to_le_bytes()].concat(),
            Message::Interval => vec![7],
        }
    }

    /// From bytes.
    ///
    /// # Errors
    /// When they are no message.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        Self::parse(bytes).ok_or(Malformed { length: bytes.len(), kind: bytes.first().copied() })
    }

    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let number = |at: usize| Some(u32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?));
        Some(match (kind, rest.len()) {
            (0, 0) => Message::Start,
            (1, 4) => Message::FlowComplete { flow: number(0)? },
            (2, 6..) => {
                let sender = match rest[4] {
                    0 => false,
                    1 => true,
                    _ => return None,
                };
                let moment = match rest[5] {
                    0 => Moment::Series,
                    1 => Moment::Warm,
                    2 => Moment::End,
                    _ => return None,
                };
                Message::FlowState { flow: number(0)?, sender, moment, info: &rest[6..] }
            }
            (3, 8) => Message::ProgramEnded { program: number(0)?, code: number(4)? as i32 },
            (4, _) => Message::Failed(rest),
            (5, 0) => Message::Finish,
            (6, 4) => Message::MessageComplete { flow: number(0)? },
            (7, 0) => Message::Interval,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn there_and_back() {
        let messages = [
            Message::Start,
            Message::FlowComplete { flow: 70_000 },
            Message::MessageComplete { flow: 70_001 },
            Message::FlowState { flow: 3, sender: true, moment: Moment::Warm, info: &[1, 2, 3] },
            Message::FlowState { flow: 3, sender: false, moment: Moment::End, info: &[] },
            Message::ProgramEnded { program: 1, code: -1 },
            Message::Failed(b"no such device"),
            Message::Finish,
            Message::Interval,
        ];
        for message in messages {
            assert_eq!(Message::decode(&message.encode()), Ok(message));
        }
    }

    proptest! {
        #[test]
        fn what_decodes_encodes_to_the_same_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..16)) {
            if let Ok(message) = Message::decode(&bytes) {
                prop_assert_eq!(message.encode(), bytes);
            }
        }
    }
}
