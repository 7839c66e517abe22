//! Messages of the guest program to the engine: each is one write to the device `/dev/firstlight`.
//!
//! The first byte is the kind. The fields follow, little-endian, and then a text or a structure that takes the rest of
//! the message. A message counts at the virtual time of its write.

/// When the state of a flow is reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportTime {
    /// A sample of a time series.
    Sample,
    /// The end of the warm-up.
    WarmupEnd,
    /// The end of the run.
    RunEnd,
}

/// A message of the guest program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GuestMessage<'a> {
    /// The hosts are set up: the fabric's time begins now.
    Start,
    /// A flow's sender has a connection.
    FlowConnected {
        /// The flow's number in the experiment.
        flow: u32,
    },
    /// A flow's receiver has all of its bytes.
    FlowComplete {
        /// The flow's number in the experiment.
        flow: u32,
    },
    /// A flow's receiver has all bytes of the earliest message in flight.
    MessageComplete {
        /// The flow's number in the experiment.
        flow: u32,
    },
    /// A flow's `struct tcp_info`, as getsockopt(TCP_INFO) gave it.
    FlowState {
        /// The flow's number in the experiment.
        flow: u32,
        /// True for the sending end, false for the receiving one.
        sender: bool,
        /// When the state is reported.
        when: ReportTime,
        /// The structure's bytes, as many as the kernel gives.
        info: &'a [u8],
    },
    /// A program has ended by itself.
    ProgramEnded {
        /// The program's index in the plan.
        program: u32,
        /// Exit code; 128 and the signal's number for a program that a signal ended.
        code: i32,
    },
    /// The run cannot go on; the text, in UTF-8, says why.
    Failed(&'a [u8]),
    /// The plan is carried out: the run ends now.
    Finish,
    /// All receivers have reported their bytes: an interval of the flows' throughput ends, or the first one begins.
    Interval,
}

/// Bytes that are not a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the guest program sent {length} bytes of kind {kind:?}, which is not a message: build kernel and engine anew")]
pub struct MalformedMessage {
    /// How many bytes there are.
    pub length: usize,
    /// The first byte.
    pub kind: Option<u8>,
}

impl<'a> GuestMessage<'a> {
    /// The message as bytes.
    pub fn encode(&self) -> Vec<u8> {
        match *self {
            GuestMessage::Start => vec![0],
            GuestMessage::FlowComplete { flow } => [&[1][..], &flow.to_le_bytes()].concat(),
            GuestMessage::FlowState { flow, sender, when, info } => {
                [&[2][..], &flow.to_le_bytes(), &[u8::from(sender), when as u8], info].concat()
            }
            GuestMessage::ProgramEnded { program, code } => {
                [&[3][..], &program.to_le_bytes(), &code.to_le_bytes()].concat()
            }
            GuestMessage::Failed(why) => [&[4][..], why].concat(),
            GuestMessage::Finish => vec![5],
            GuestMessage::MessageComplete { flow } => [&[6][..], &flow.to_le_bytes()].concat(),
            GuestMessage::Interval => vec![7],
            GuestMessage::FlowConnected { flow } => [&[8][..], &flow.to_le_bytes()].concat(),
        }
    }

    /// The message that these bytes are.
    ///
    /// # Errors
    /// When the bytes are not a message.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, MalformedMessage> {
        Self::parse(bytes).ok_or(MalformedMessage { length: bytes.len(), kind: bytes.first().copied() })
    }

    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let number = |at: usize| Some(u32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?));
        Some(match (kind, rest.len()) {
            (0, 0) => GuestMessage::Start,
            (1, 4) => GuestMessage::FlowComplete { flow: number(0)? },
            (2, 6..) => {
                let sender = match rest[4] {
                    0 => false,
                    1 => true,
                    _ => return None,
                };
                let when = match rest[5] {
                    0 => ReportTime::Sample,
                    1 => ReportTime::WarmupEnd,
                    2 => ReportTime::RunEnd,
                    _ => return None,
                };
                GuestMessage::FlowState { flow: number(0)?, sender, when, info: &rest[6..] }
            }
            (3, 8) => GuestMessage::ProgramEnded { program: number(0)?, code: number(4)? as i32 },
            (4, _) => GuestMessage::Failed(rest),
            (5, 0) => GuestMessage::Finish,
            (6, 4) => GuestMessage::MessageComplete { flow: number(0)? },
            (7, 0) => GuestMessage::Interval,
            (8, 4) => GuestMessage::FlowConnected { flow: number(0)? },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_survive_encoding() {
        let messages = [
            GuestMessage::Start,
            GuestMessage::FlowConnected { flow: 70_002 },
            GuestMessage::FlowComplete { flow: 70_000 },
            GuestMessage::MessageComplete { flow: 70_001 },
            GuestMessage::FlowState { flow: 3, sender: true, when: ReportTime::WarmupEnd, info: &[1, 2, 3] },
            GuestMessage::FlowState { flow: 3, sender: false, when: ReportTime::RunEnd, info: &[] },
            GuestMessage::ProgramEnded { program: 1, code: -1 },
            GuestMessage::Failed(b"no such device"),
            GuestMessage::Finish,
            GuestMessage::Interval,
        ];
        for message in messages {
            assert_eq!(GuestMessage::decode(&message.encode()), Ok(message));
        }
    }

    proptest! {
        #[test]
        fn decoded_messages_encode_to_the_same_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..16)) {
            if let Ok(message) = GuestMessage::decode(&bytes) {
                prop_assert_eq!(message.encode(), bytes);
            }
        }
    }
}
