//! A key's value, checked against what the key wants.

use super::document::{Node, Origin, Raw};
use super::keys::Kind;
use super::registry::MOST_PACKETS;
use super::settings::{self, Setting};
use firstlight_formats::nearest;
use firstlight_units::{Bytes, Rate, Span, UnitError};
use serde_json::{Value as Json, json};
use std::fmt;
use std::str::FromStr;

/// A value of the right type and within its range.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Count(u64),
    Number(f64),
    Flag(bool),
    Time(Span),
    Rate(Rate),
    Size(Bytes),
    Pair(u16, u16),
    Matching(Vec<(u16, u16)>),
    Hosts(Hosts),
    Sysctls(Vec<Setting>),
    Route(Vec<Setting>),
    Texts(Vec<String>),
    Sizes(Vec<Bytes>),
    /// A bit each.
    Classes(u8),
}

/// Hosts as an experiment names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hosts {
    All,
    Rack(u32),
    Host(u32),
    RackHost(u32, u32),
}

impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hosts::All => f.write_str("all"),
            Hosts::Rack(rack) => write!(f, "rack{rack}"),
            Hosts::Host(host) => write!(f, "host{host}"),
            Hosts::RackHost(rack, host) => write!(f, "rack{rack}.host{host}"),
        }
    }
}

impl FromStr for Hosts {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let number = |text: &str, name: &str| {
            let digits = text.strip_prefix(name).ok_or(())?;
            if digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse().map_err(|_| ()) } else { Err(()) }
        };
        match text.split_once('.') {
            Some((rack, host)) => Ok(Hosts::RackHost(number(rack, "rack")?, number(host, "host")?)),
            None if text == "all" => Ok(Hosts::All),
            None if text.starts_with("rack") => Ok(Hosts::Rack(number(text, "rack")?)),
            None => Ok(Hosts::Host(number(text, "host")?)),
        }
    }
}

impl Value {
    /// Checks a node against what its key wants; the error says what was found and what would be right.
    pub fn read(node: &Node, kind: Kind) -> Result<Value, String> {
        let raw = match (&node.value, &node.origin) {
            (Raw::Text(text), Origin::Set(_)) if !kind.is_textual() => {
                Raw::parse_value(text.trim(), &node.origin).unwrap_or_else(|| node.value.clone())
            }
            _ => node.value.clone(),
        };
        let expected = || format!("expected {kind}, found {}: write for example {}", raw.describe(), kind.example());
        match (kind, &raw) {
            (Kind::Text, Raw::Text(text)) if !text.is_empty() => Ok(Value::Text(text.clone())),
            (Kind::Name(names), Raw::Text(text)) => one_of(text, names).map(Value::Text),
            (Kind::Count { least, most, of }, Raw::Integer(n)) => count(*n, least, most, of),
            (Kind::Number { least, most }, Raw::Integer(_) | Raw::Float(_)) => number(&raw, least, most),
            (Kind::Flag, Raw::Flag(flag)) => Ok(Value::Flag(*flag)),
            (Kind::Time { positive }, Raw::Text(text)) => time(text, positive),
            (Kind::Rate, Raw::Text(text)) => rate(text),
            (Kind::Size { least, most }, Raw::Text(text)) => size(text, least, most),
            (Kind::Time { .. } | Kind::Rate | Kind::Size { .. }, Raw::Integer(_) | Raw::Float(_)) => {
                let (number, example) = (raw.describe(), kind.example());
                Err(format!("expected {kind}, found {number}, which has no unit: write for example {example}"))
            }
            (Kind::Pair, Raw::List(_)) => pair(&raw)
                .map(|(a, b)| Value::Pair(a, b))
                .ok_or_else(|| format!("expected {kind}: write {}", kind.example())),
            (Kind::Matching, Raw::List(items)) => {
                let pairs = items.iter().map(|item| pair(&item.value)).collect::<Option<Vec<_>>>();
                pairs.map(Value::Matching).ok_or_else(|| format!("expected {kind}: write {}", kind.example()))
            }
            (Kind::Hosts, Raw::Text(text)) => text.parse().map(Value::Hosts).map_err(|()| {
                format!("'{text}' names no hosts: write \"rack0\", \"host3\", \"rack0.host3\" or \"all\"")
            }),
            (Kind::Sysctls, Raw::List(items)) => settings::sysctls(items).map(Value::Sysctls),
            (Kind::Route, Raw::Text(text)) => settings::route(text).map(Value::Route),
            (Kind::Length { least }, Raw::Integer(n)) => length(*n, least),
            (Kind::Length { least }, Raw::Text(text)) => size(text, least, 1 << 60),
            (Kind::Texts, Raw::List(items)) => texts(items).map(Value::Texts),
            (Kind::Sizes, Raw::List(items)) => sizes(items).map(Value::Sizes),
            (Kind::Classes, Raw::List(items)) => classes(items)
                .map(Value::Classes)
                .ok_or_else(|| format!("expected {kind}, each from 0 to 7: write for example {}", kind.example())),
            (Kind::Version, Raw::Text(text)) => settings::version(text).map(Value::Text),
            _ => Err(expected()),
        }
    }

    /// As in the resolved experiment of a manifest.
    pub fn json(&self) -> Json {
        match self {
            Value::Text(text) => json!(text),
            Value::Count(n) => json!(n),
            Value::Number(x) => json!(x),
            Value::Flag(flag) => json!(flag),
            Value::Time(span) => json!(span.to_string()),
            Value::Rate(rate) => json!(rate.to_string()),
            Value::Size(bytes) => json!(bytes.to_string()),
            Value::Pair(a, b) => json!([a, b]),
            Value::Matching(pairs) => json!(pairs),
            Value::Hosts(hosts) => json!(hosts.to_string()),
            Value::Texts(all) => json!(all),
            Value::Sizes(all) => all.iter().map(|size| json!(size.to_string())).collect(),
            Value::Classes(mask) => json!((0..8).filter(|class| mask & (1 << class) != 0).collect::<Vec<u8>>()),
            Value::Sysctls(all) => all.iter().map(|(name, value)| json!(format!("{name}={value}"))).collect(),
            Value::Route(all) => {
                json!(all.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(" "))
            }
        }
    }
}

/// The name itself, or an error with the nearest one.
pub(crate) fn one_of(text: &str, names: &[&str]) -> Result<String, String> {
    if names.contains(&text) {
        return Ok(text.into());
    }
    let near = nearest(text, names.iter().copied()).map_or(String::new(), |name| format!(": did you mean \"{name}\"?"));
    Err(format!("'{text}' is not one of {}{near}", names.join(", ")))
}

fn count(n: i64, least: u64, most: u64, of: &str) -> Result<Value, String> {
    match u64::try_from(n) {
        Ok(n) if (least..=most).contains(&n) => Ok(Value::Count(n)),
        _ => {
            let of = if of.is_empty() { String::new() } else { format!(" {of}") };
            Err(format!("{n}{of} is out of range: use {least} to {most}"))
        }
    }
}

fn number(raw: &Raw, least: f64, most: f64) -> Result<Value, String> {
    let x = match raw {
        Raw::Integer(n) => *n as f64,
        Raw::Float(x) => *x,
        _ => f64::NAN,
    };
    if x >= least && x <= most {
        Ok(Value::Number(x))
    } else {
        Err(format!("{x} is out of range: use {least} to {most}"))
    }
}

fn time(text: &str, positive: bool) -> Result<Value, String> {
    let span: Span = text.parse().map_err(|error: UnitError| error.to_string())?;
    if positive && span.is_zero() {
        return Err("must be longer than zero".into());
    }
    Ok(Value::Time(span))
}

fn rate(text: &str) -> Result<Value, String> {
    let rate: Rate = text.parse().map_err(|error: UnitError| error.to_string())?;
    if rate.as_bps() == 0 {
        return Err("a link of zero rate never sends: write for example \"10Gbps\"".into());
    }
    Ok(Value::Rate(rate))
}

fn size(text: &str, least: u64, most: u64) -> Result<Value, String> {
    let bytes: Bytes = text.parse().map_err(|error: UnitError| error.to_string())?;
    if !(least..=most).contains(&bytes.get()) {
        return Err(format!("{bytes} is out of range: use {} to {}", Bytes::new(least), Bytes::new(most)));
    }
    Ok(Value::Size(bytes))
}

/// A number of packets.
fn length(n: i64, least: u64) -> Result<Value, String> {
    match u32::try_from(n) {
        Ok(n) if u64::from(n) >= least && u64::from(n) <= MOST_PACKETS => Ok(Value::Count(n.into())),
        _ => Err(format!("{n} packets are out of range: use {least} to {MOST_PACKETS}, or an amount of data")),
    }
}

/// A list of texts.
fn texts(items: &[Node]) -> Result<Vec<String>, String> {
    let one = |item: &Node| match &item.value {
        Raw::Text(text) => Ok(text.clone()),
        other => Err(format!("expected a text, found {}: write for example \"host2.port\"", other.describe())),
    };
    items.iter().map(one).collect()
}

/// A list of sizes that grow.
fn sizes(items: &[Node]) -> Result<Vec<Bytes>, String> {
    let one = |item: &Node| match &item.value {
        Raw::Text(text) => text.parse::<Bytes>().map_err(|error| error.to_string()),
        other => Err(format!("expected a size, found {}: write for example \"100kB\"", other.describe())),
    };
    let all: Vec<Bytes> = items.iter().map(one).collect::<Result<_, _>>()?;
    let first = all.first().filter(|size| size.get() == 0).copied();
    let wrong = all.windows(2).find(|pair| pair[1] <= pair[0]).map(|pair| pair[1]);
    match first.or(wrong) {
        Some(size) => Err(format!("{size} is not larger than what is before it: write sizes that grow, from above 0B")),
        None => Ok(all),
    }
}

/// At least one class, a bit each.
fn classes(items: &[Node]) -> Option<u8> {
    let bit = |node: &Node| match node.value {
        Raw::Integer(n @ 0..=7) => Some(1u8 << n),
        _ => None,
    };
    let mask = items.iter().try_fold(0, |mask, node| Some(mask | bit(node)?))?;
    (mask != 0).then_some(mask)
}

fn pair(raw: &Raw) -> Option<(u16, u16)> {
    let Raw::List(items) = raw else { return None };
    let rack = |node: &Node| match node.value {
        Raw::Integer(n) => u16::try_from(n).ok(),
        _ => None,
    };
    match items.as_slice() {
        [a, b] => Some((rack(a)?, rack(b)?)),
        _ => None,
    }
}

impl Kind {
    /// Whether a value is written as a text in TOML.
    pub(crate) fn is_textual(self) -> bool {
        use Kind::{Hosts, Name, Rate, Route, Size, Text, Time, Version};
        matches!(self, Text | Name(_) | Time { .. } | Rate | Size { .. } | Hosts | Route | Version)
    }

    /// A value of this kind as TOML writes it.
    pub(crate) fn example(self) -> String {
        match self {
            Kind::Text => "\"my-experiment\"".into(),
            Kind::Name(names) => format!("\"{}\"", names[0]),
            Kind::Count { least, .. } => least.max(1).to_string(),
            Kind::Number { least, most } => {
                if least + 0.5 <= most {
                    (least + 0.5).to_string()
                } else {
                    least.to_string()
                }
            }
            Kind::Flag => "true".into(),
            Kind::Time { .. } => "\"180us\"".into(),
            Kind::Rate => "\"10Gbps\"".into(),
            Kind::Size { .. } => "\"9000B\"".into(),
            Kind::Pair => "[0, 1]".into(),
            Kind::Matching => "[[0, 1], [1, 0]]".into(),
            Kind::Hosts => "\"rack0\"".into(),
            Kind::Sysctls => "[\"net.ipv4.tcp_ecn=1\"]".into(),
            Kind::Route => "\"rto_min 2ms quickack 1\"".into(),
            Kind::Length { least } => least.max(100).to_string(),
            Kind::Texts => "[\"host2.port\"]".into(),
            Kind::Sizes => "[\"10kB\", \"1MB\"]".into(),
            Kind::Classes => "[3, 4]".into(),
            Kind::Version => "\"6.12\"".into(),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Text => f.write_str("a text"),
            Kind::Name(names) => write!(f, "one of {}", names.join(", ")),
            Kind::Count { of: "", .. } => f.write_str("a whole number"),
            Kind::Count { of, .. } => write!(f, "a whole number of {of}"),
            Kind::Number { .. } => f.write_str("a number"),
            Kind::Flag => f.write_str("true or false"),
            Kind::Time { .. } => f.write_str("a time"),
            Kind::Rate => f.write_str("a rate"),
            Kind::Size { .. } => f.write_str("a size"),
            Kind::Pair => f.write_str("a pair of racks, source and destination"),
            Kind::Matching => f.write_str("a list of pairs of racks"),
            Kind::Hosts => f.write_str("hosts"),
            Kind::Sysctls => f.write_str("a list of settings"),
            Kind::Route => f.write_str("attributes of a route"),
            Kind::Length { .. } => f.write_str("a number of packets or a size"),
            Kind::Texts => f.write_str("a list of texts"),
            Kind::Sizes => f.write_str("a list of sizes"),
            Kind::Classes => f.write_str("a list of traffic classes"),
            Kind::Version => f.write_str("a version of Linux, as a text"),
        }
    }
}
