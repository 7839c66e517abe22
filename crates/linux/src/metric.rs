//! Attributes of a route (`rto_min 2ms`), as `ip route` names them and the kernel's routing protocol numbers them.

/// Form of an attribute's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// A whole number.
    Number,
    /// A time, which the kernel counts in this number of parts of a millisecond.
    Time(u32),
    /// Names of features.
    Features,
    /// A congestion control.
    Name,
}

/// Each attribute's name, number (`RTAX_*` of rtnetlink(7)) and form.
const METRICS: &[(&str, u16, Form)] = &[
    ("advmss", 8, Form::Number),
    ("congctl", 16, Form::Name),
    ("cwnd", 7, Form::Number),
    ("fastopen_no_cookie", 17, Form::Number),
    ("features", 12, Form::Features),
    ("hoplimit", 10, Form::Number),
    ("initcwnd", 11, Form::Number),
    ("initrwnd", 14, Form::Number),
    ("mtu", 2, Form::Number),
    ("quickack", 15, Form::Number),
    ("reordering", 9, Form::Number),
    ("rto_min", RTO_MIN, Form::Time(1)),
    ("rtt", 4, Form::Time(8)),
    ("rttvar", 5, Form::Time(4)),
    ("ssthresh", 6, Form::Number),
    ("window", 3, Form::Number),
];

/// Number of the attribute whose bits say which other attributes are locked.
const LOCK: u16 = 1;
const RTO_MIN: u16 = 13;

/// An attribute of a route as a kernel takes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Metric {
    /// Number of the attribute in the routing protocol.
    pub number: u16,
    /// Value of the attribute in the routing protocol.
    pub value: Vec<u8>,
}

impl Metric {
    /// Names of all attributes.
    pub fn names() -> impl Iterator<Item = &'static str> {
        METRICS.iter().map(|(name, ..)| *name)
    }

    /// The attribute of that name.
    ///
    /// # Errors
    /// When the value is wrong, or there is no such attribute: what is wrong.
    pub fn new(name: &str, value: &str) -> Result<Metric, String> {
        let known = METRICS.iter().find(|(known, ..)| *known == name);
        let (_, number, form) = known.ok_or_else(|| format!("'{name}' is not an attribute of a route"))?;
        let number_of = |text: &str| text.parse::<u32>().ok();
        let found = match form {
            Form::Number => number_of(value).map(|n| n.to_ne_bytes().to_vec()).ok_or("a whole number: write 10"),
            Form::Time(parts) => time(value, *parts).map(|n| n.to_ne_bytes().to_vec()).ok_or("a time: write 2ms"),
            Form::Features if value == "ecn" => Ok(1u32.to_ne_bytes().to_vec()),
            Form::Features => Err("a feature: write ecn"),
            Form::Name => Ok([value.as_bytes(), &[0]].concat()),
        };
        let value = found.map_err(|wanted| format!("{name} '{value}' is not {wanted}"))?;
        Ok(Metric { number: *number, value })
    }

    /// The attribute that locks others, where that matters: TCP uses a route's `rto_min` only if it is locked. The
    /// command `ip route` locks it too.
    pub fn lock(metrics: &[Metric]) -> Option<Metric> {
        let locked = metrics.iter().any(|metric| metric.number == RTO_MIN);
        locked.then(|| Metric { number: LOCK, value: (1u32 << RTO_MIN).to_ne_bytes().to_vec() })
    }

    /// The attributes in a route's text, which has names and values in turn.
    ///
    /// # Errors
    /// When an attribute is wrong: what is wrong with the first such one.
    pub fn parse(route: &str) -> Result<Vec<Metric>, String> {
        let words: Vec<&str> = route.split_whitespace().collect();
        let one = |pair: &[&str]| match pair {
            [name, value] => Metric::new(name, value),
            _ => Err(format!("{} has no value", pair[0])),
        };
        words.chunks(2).map(one).collect()
    }
}

/// A time in whole milliseconds (`2ms`, `1s`) in the kernel's parts of a millisecond. A bare number counts those parts.
fn time(text: &str, parts: u32) -> Option<u32> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u32 = digits.parse().ok()?;
    match &text[digits.len()..] {
        "" => Some(number),
        "ms" => number.checked_mul(parts),
        "s" => number.checked_mul(1000)?.checked_mul(parts),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are those that `ip route` sets.
    #[test]
    fn values_are_those_of_the_routing_protocol() {
        let number = |text: &str| u32::from_ne_bytes(Metric::parse(text).unwrap()[0].value[..].try_into().unwrap());
        assert_eq!(["rto_min 2ms", "rto_min 1s", "rto_min 7", "rtt 3ms"].map(number), [2, 1000, 7, 24]);
        assert_eq!(["initcwnd 20", "features ecn"].map(number), [20, 1]);
        assert_eq!(Metric::parse("congctl bbr").unwrap(), [Metric { number: 16, value: b"bbr\0".to_vec() }]);
        assert_eq!(Metric::parse("").unwrap(), []);
        let lock = |text: &str| Metric::lock(&Metric::parse(text).unwrap()).map(|lock| (lock.number, lock.value));
        assert_eq!(lock("initcwnd 20 rto_min 2ms"), Some((1, 0x2000u32.to_ne_bytes().to_vec())));
        assert_eq!(lock("initcwnd 20"), None);
    }

    #[test]
    fn wrong_values_are_refused() {
        let error = |text: &str| Metric::parse(text).unwrap_err();
        assert_eq!(error("rto_min 2min"), "rto_min '2min' is not a time: write 2ms");
        assert_eq!(error("quickack yes"), "quickack 'yes' is not a whole number: write 10");
        assert_eq!(error("rto_min 2ms quickack"), "quickack has no value");
        assert_eq!(error("speed 1"), "'speed' is not an attribute of a route");
        assert_eq!(error("rtt 4294967s"), "rtt '4294967s' is not a time: write 2ms");
    }
}
