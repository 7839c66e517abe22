//! Hosts as an experiment names them.

use crate::text_form::text_value;
use std::fmt;
use std::str::FromStr;

/// One host, those of a rack, or all. Hosts are counted from 0: `host3` over the whole fabric, `rack0.host3` in its
/// rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostName {
    /// All hosts: `all`.
    All,
    /// The hosts of a rack: `rack0`.
    Rack(u32),
    /// A host: `host3`.
    Host(u32),
    /// A host of a rack: `rack0.host3`.
    RackHost(u32, u32),
}

impl HostName {
    /// Every host.
    pub(crate) fn all() -> Self {
        HostName::All
    }

    /// Whether the name is that of one host.
    pub fn is_single(self) -> bool {
        matches!(self, HostName::Host(_) | HostName::RackHost(..))
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostName::All => f.write_str("all"),
            HostName::Rack(rack) => write!(f, "rack{rack}"),
            HostName::Host(host) => write!(f, "host{host}"),
            HostName::RackHost(rack, host) => write!(f, "rack{rack}.host{host}"),
        }
    }
}

impl FromStr for HostName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str, name: &str| {
            let digits = text.strip_prefix(name).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
            digits.and_then(|digits| digits.parse::<u32>().ok())
        };
        let found = match text.split_once('.') {
            Some((rack, host)) => number(rack, "rack").zip(number(host, "host")).map(|(r, h)| HostName::RackHost(r, h)),
            None if text == "all" => Some(HostName::All),
            None if text.starts_with("rack") => number(text, "rack").map(HostName::Rack),
            None => number(text, "host").map(HostName::Host),
        };
        let wrong = || format!("'{text}' names no hosts: write \"rack0\", \"host3\", \"rack0.host3\" or \"all\"");
        found.ok_or_else(wrong)
    }
}

text_value! {
    HostName, format: "hosts", pattern: r"^(all|host\d+|rack\d+(\.host\d+)?)$", example: "rack0"
}
