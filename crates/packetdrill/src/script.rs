//! A parsed script.

use firstlight_net::Ecn;
use firstlight_units::Span;

/// A script, in the order of its text.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// `--name=value` or `--name` at the top.
    pub(crate) options: Vec<(String, String)>,
    pub(crate) events: Vec<ScriptEvent>,
}

/// Something that happens, or is expected.
#[derive(Debug)]
pub(crate) struct ScriptEvent {
    pub(crate) line: usize,
    pub(crate) when: ScriptTime,
    pub(crate) action: ScriptAction,
}

/// When an event happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScriptTime {
    /// The event happens at any time.
    Any,
    /// Between two spans after the script's start.
    Absolute(Span, Span),
    /// Between two spans after the event before.
    Relative(Span, Span),
}

/// An event of a script.
#[derive(Debug)]
pub(crate) enum ScriptAction {
    /// The peer sends this packet.
    Inbound(PacketSpec),
    /// The endpoint is expected to send this packet.
    Outbound(PacketSpec),
    /// The program calls the system.
    Call(Call),
    /// A command of the shell.
    Command(String),
    /// Python statements about the connection.
    Code(String),
}

/// A TCP packet.
#[derive(Clone, Debug)]
pub(crate) struct PacketSpec {
    pub(crate) ecn: Option<Ecn>,
    /// Letters of `FSRP.UEW`.
    pub(crate) flags: String,
    pub(crate) seq: u32,
    pub(crate) len: u32,
    pub(crate) ack: Option<u32>,
    pub(crate) window: Option<u16>,
    /// `None`: any options (`<...>`).
    pub(crate) options: Option<Vec<TcpOption>>,
}

/// An option in the TCP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TcpOption {
    Nop,
    End,
    Mss(u16),
    WindowScale(u8),
    SackPermitted,
    Sack(Vec<(u32, u32)>),
    Timestamp {
        value: u32,
        echo: u32,
    },
    /// An option that the endpoint does not know.
    Other(String),
}

/// A call of the system and what it must return.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) args: Vec<ScriptValue>,
    /// The call blocks, and returns this span after the event before it.
    pub(crate) end: Option<Span>,
    pub(crate) result: ScriptValue,
    pub(crate) errno: Option<String>,
}

/// An argument or result of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ScriptValue {
    /// The options are not compared (`...`).
    Any,
    Number(i64),
    /// A name, or several joined by `|`.
    Name(String),
    Text(String),
    List(Vec<ScriptValue>),
    /// `{name=value, ...}`; a value without a name has an empty one.
    Record(Vec<(String, ScriptValue)>),
}

impl ScriptValue {
    pub(crate) fn number(&self) -> Option<i64> {
        match self {
            ScriptValue::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The number in `[number]`.
    pub(crate) fn only(&self) -> Option<i64> {
        match self {
            ScriptValue::List(list) if list.len() == 1 => list[0].number(),
            _ => None,
        }
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            ScriptValue::Name(name) => name,
            _ => "",
        }
    }

    /// Whether it is one of several names joined by `|`, or this name alone.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.name().split('|').any(|part| part == name)
    }

    /// The field of a record.
    pub(crate) fn field(&self, name: &str) -> Option<&ScriptValue> {
        match self {
            ScriptValue::Record(fields) => fields.iter().find(|(field, _)| field == name).map(|(_, value)| value),
            _ => None,
        }
    }

    pub(crate) fn items(&self) -> &[ScriptValue] {
        match self {
            ScriptValue::List(items) => items,
            _ => &[],
        }
    }
}
