//! Settings of Linux hosts as experiments write them: `net.ipv4.tcp_ecn=1`, and the attributes of a route.

use crate::text_form::text_value;
use firstlight_formats::nearest;
use firstlight_linux::{Metric, Sysctl};
use std::fmt;
use std::str::FromStr;

/// A setting of a kernel in a network namespace, written as `net.ipv4.tcp_ecn=1`.
#[derive(Clone, Debug, PartialEq)]
pub struct SysctlText(pub(crate) Sysctl);

/// Attributes of a route, each once, with its value: `rto_min 2ms quickack 1`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteAttributes(Vec<(String, String)>);

/// A version of Linux, or its first numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelVersion(String);

impl FromStr for SysctlText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((name, value)) = text.split_once('=') else {
            return Err(format!("'{text}' sets nothing: write for example \"net.ipv4.tcp_ecn=1\""));
        };
        let (name, value) = (name.trim().replace('/', "."), value.trim());
        if value.is_empty() || value.contains(char::is_control) {
            return Err(format!("'{text}' has no value: write for example \"net.ipv4.tcp_ecn=1\""));
        }
        let plain =
            |step: &str| !step.is_empty() && step.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
        if !name.starts_with("net.") || !name.split('.').all(plain) {
            return Err(format!(
                "'{name}' is not a setting of a network namespace: those are called net.ipv4.tcp_ecn and so on"
            ));
        }
        Ok(SysctlText(Sysctl { name, value: value.into() }))
    }
}

impl fmt::Display for SysctlText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.0.name, self.0.value)
    }
}

/// Adds a setting, in the place of an earlier one of that name.
pub(crate) fn set_sysctl(settings: &mut Vec<Sysctl>, name: &str, value: &str) {
    settings.retain(|known| known.name != name);
    settings.push(Sysctl { name: name.into(), value: value.into() });
}

impl RouteAttributes {
    /// Gives an attribute its value, in the place of an earlier one.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.0.retain(|(known, _)| known != name);
        self.0.push((name.into(), value.into()));
    }

    /// Gives the attributes of `others` their values.
    pub(crate) fn extend(&mut self, others: &RouteAttributes) {
        others.0.iter().for_each(|(name, value)| self.set(name, value));
    }
}

impl FromStr for RouteAttributes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut attributes = RouteAttributes::default();
        for pair in words.chunks(2) {
            let name = pair[0];
            if !Metric::names().any(|known| known == name) {
                let all = || format!("use {}", Metric::names().collect::<Vec<_>>().join(", "));
                let near = nearest(name, Metric::names()).map_or_else(all, |near| format!("did you mean {near}?"));
                return Err(format!("'{name}' is not an attribute of a route: {near}"));
            }
            let Some(value) = pair.get(1) else {
                return Err(format!("{name} has no value: write for example \"rto_min 2ms quickack 1\""));
            };
            Metric::new(name, value)?;
            attributes.set(name, value);
        }
        Ok(attributes)
    }
}

impl fmt::Display for RouteAttributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs: Vec<String> = self.0.iter().map(|(name, value)| format!("{name} {value}")).collect();
        f.write_str(&pairs.join(" "))
    }
}

impl FromStr for KernelVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let known = text.split('.').all(is_number).then(|| KernelVersion(text.into()));
        known.ok_or_else(|| format!("'{text}' is not a version of Linux: write for example \"6.12\""))
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

text_value! {
    SysctlText, format: "sysctl", pattern: r"^\s*net[./][A-Za-z0-9_./-]+\s*=.*\S", example: "net.ipv4.tcp_ecn=1"
}
text_value! {
    RouteAttributes, format: "route", pattern: r"^\s*(\S+\s+\S+\s*)*$", example: "rto_min 2ms quickack 1"
}
text_value! {
    KernelVersion, format: "kernel-version", pattern: r"^\d+(\.\d+)*$", example: "6.12"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_attribute_replaces_an_earlier_one() {
        let text = |text: &str| text.parse::<RouteAttributes>().map(|route| route.to_string());
        assert_eq!(text(" rto_min 2ms  quickack 1 rto_min 4ms"), Ok("quickack 1 rto_min 4ms".into()));
        assert_eq!(text(""), Ok(String::new()));
    }
}
