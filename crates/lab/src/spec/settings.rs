//! Settings of a Linux host as experiments write them: `net.ipv4.tcp_ecn=1`, and a route's attributes.

use super::document::{Node, Raw};
use firstlight_formats::nearest;
use firstlight_linux::Metric;

/// A name with its value.
pub(crate) type Setting = (String, String);

/// A list of texts `name=value`.
pub(crate) fn sysctls(items: &[Node]) -> Result<Vec<Setting>, String> {
    let one = |item: &Node| match &item.value {
        Raw::Text(text) => sysctl(text),
        other => Err(format!("expected a text, found {}: write for example \"net.ipv4.tcp_ecn=1\"", other.describe())),
    };
    items.iter().map(one).collect()
}

fn sysctl(text: &str) -> Result<Setting, String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err(format!("'{text}' sets nothing: write for example \"net.ipv4.tcp_ecn=1\""));
    };
    let (name, value) = (name.trim().replace('/', "."), value.trim());
    if value.is_empty() || value.contains(char::is_control) {
        return Err(format!("'{text}' has no value: write for example \"net.ipv4.tcp_ecn=1\""));
    }
    let plain = |step: &str| !step.is_empty() && step.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    if !name.starts_with("net.") || !name.split('.').all(plain) {
        return Err(format!(
            "'{name}' is not a setting of a network namespace: those are called net.ipv4.tcp_ecn and so on"
        ));
    }
    Ok((name, value.into()))
}

/// Attributes of a route, each once.
pub(crate) fn route(text: &str) -> Result<Vec<Setting>, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut found: Vec<Setting> = vec![];
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
        set(&mut found, name, value);
    }
    Ok(found)
}

/// A version of Linux, whole or its first numbers.
pub(crate) fn version(text: &str) -> Result<String, String> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let known = text.split('.').all(is_number).then(|| text.to_string());
    known.ok_or_else(|| format!("'{text}' is not a version of Linux: write for example \"6.12\""))
}

/// Gives a setting its value, in the place of an earlier one of that name.
pub(crate) fn set(settings: &mut Vec<Setting>, name: &str, value: &str) {
    settings.retain(|(known, _)| known != name);
    settings.push((name.into(), value.into()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_attribute_replaces_an_earlier_one() {
        let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
        assert_eq!(
            route(" rto_min 2ms  quickack 1 rto_min 4ms"),
            Ok(vec![pair("quickack", "1"), pair("rto_min", "4ms")])
        );
        assert_eq!(route(""), Ok(vec![]));
    }
}
