//! The keys of a `.topo` file and their values, each checked by itself.

use crate::ImportError;
use crate::nearest;
use crate::reader::{FilePlace, TextLine, Word, lines};
use firstlight_units::{Rate, Span};

/// A key of a tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TopoKey {
    DownlinkSpeed,
    DownlinkLatency,
    SwitchLatency,
    RadixUp,
    RadixDown,
    QueueUp,
    QueueDown,
    Oversubscribed,
    Bundle,
}

const KEYS: [TopoKey; 9] = [
    TopoKey::DownlinkSpeed,
    TopoKey::DownlinkLatency,
    TopoKey::SwitchLatency,
    TopoKey::RadixUp,
    TopoKey::RadixDown,
    TopoKey::QueueUp,
    TopoKey::QueueDown,
    TopoKey::Oversubscribed,
    TopoKey::Bundle,
];

impl TopoKey {
    pub const fn name(self) -> &'static str {
        match self {
            TopoKey::DownlinkSpeed => "Downlink_speed_Gbps",
            TopoKey::DownlinkLatency => "Downlink_Latency_ns",
            TopoKey::SwitchLatency => "Switch_Latency_ns",
            TopoKey::RadixUp => "Radix_Up",
            TopoKey::RadixDown => "Radix_Down",
            TopoKey::QueueUp => "Queue_Up",
            TopoKey::QueueDown => "Queue_Down",
            TopoKey::Oversubscribed => "Oversubscribed",
            TopoKey::Bundle => "Bundle",
        }
    }

    /// Whether the key is about uplinks, which the top tier lacks.
    const fn is_upward(self) -> bool {
        matches!(self, TopoKey::RadixUp | TopoKey::QueueUp)
    }
}

/// A value: the field that its key uses is set.
#[derive(Clone, Copy, Debug)]
pub(super) struct TopoSetting<'a> {
    pub place: FilePlace<'a>,
    pub count: u32,
    pub rate: Rate,
    pub span: Span,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Header<'a> {
    pub nodes: TopoSetting<'a>,
    pub tiers: TopoSetting<'a>,
    pub podsize: TopoSetting<'a>,
}

#[derive(Clone, Debug)]
pub(super) struct Tier<'a> {
    number: usize,
    /// Place of the tier's heading.
    place: FilePlace<'a>,
    settings: Vec<(TopoKey, TopoSetting<'a>)>,
}

impl<'a> Tier<'a> {
    pub fn get(&self, key: TopoKey) -> Option<TopoSetting<'a>> {
        self.settings.iter().find(|(known, _)| *known == key).map(|(_, setting)| *setting)
    }

    /// A setting that every tier must have.
    pub fn need(&self, key: TopoKey) -> Result<TopoSetting<'a>, ImportError> {
        let (name, number) = (key.name(), self.number);
        self.get(key)
            .ok_or_else(|| self.place.error(format!("tier {number} has no {name}: add a line \"{name} VALUE\"")))
    }
}

/// The header of a file, and its tiers from below.
#[derive(Debug)]
pub(super) struct Sections<'a> {
    pub header: Header<'a>,
    pub tiers: Vec<Tier<'a>>,
}

pub(super) fn read<'a>(file: &'a str, text: &'a str) -> Result<Sections<'a>, ImportError> {
    let mut lines = lines(file, text, Some('#')).peekable();
    let mut head = Vec::new();
    while let Some(line) = lines.next_if(|line| !is(&line.words[0], "Tier")) {
        head.push(line);
    }
    let start = FilePlace::start(file);
    let header = read_header(&head, lines.peek().map_or(start, |line| line.words[0].place))?;
    let mut found: Vec<Tier<'a>> = Vec::new();
    for line in lines {
        if is(&line.words[0], "Tier") {
            let tier = heading(&line, &header, &found)?;
            found.push(tier);
        } else {
            let tier = found.last_mut().expect("the head ends at the first tier");
            read_setting(&line, tier, header.tiers.count as usize)?;
        }
    }
    let count = header.tiers.count as usize;
    if let Some(missing) = (0..count).find(|number| found.iter().all(|tier| tier.number != *number)) {
        let problem = format!("there are {count} Tiers and no section for tier {missing}: add \"Tier {missing}\"");
        return Err(header.tiers.place.error(problem));
    }
    found.sort_by_key(|tier| tier.number);
    Ok(Sections { header, tiers: found })
}

fn is(word: &Word<'_>, name: &str) -> bool {
    word.text.eq_ignore_ascii_case(name)
}

fn read_header<'a>(lines: &[TextLine<'a>], end: FilePlace<'a>) -> Result<Header<'a>, ImportError> {
    const NAMES: [&str; 3] = ["Nodes", "Tiers", "Podsize"];
    let mut values = [None; 3];
    for line in lines {
        let key = &line.words[0];
        let Some(i) = NAMES.iter().position(|name| is(key, name)) else {
            let near = like(key.text, NAMES.into_iter().chain(["Tier"]));
            return Err(key
                .error(format!("'{}' is not a key before the first tier: use Nodes, Tiers, Podsize{near}", key.text)));
        };
        let words = line.expect(&[2], &format!("\"{} NUMBER\"", NAMES[i]))?;
        let (least, most) = if i == 1 { (2, 3) } else { (1, 1_000_000) };
        let count = words[1].whole(&format!("the number of {}", NAMES[i]), least, most)?;
        let value = setting(words[1].place, count);
        if values[i].replace(value).is_some() {
            return Err(key.error(format!("{} is set twice: set it once", NAMES[i])));
        }
    }
    let need = |i: usize| values[i].ok_or_else(|| end.error(format!("{} is missing before the first tier", NAMES[i])));
    Ok(Header { nodes: need(0)?, tiers: need(1)?, podsize: need(2)? })
}

fn heading<'a>(line: &TextLine<'a>, header: &Header<'a>, found: &[Tier<'a>]) -> Result<Tier<'a>, ImportError> {
    let words = line.expect(&[2], "\"Tier NUMBER\"")?;
    let number = words[1].whole("the number of a tier", 0, header.tiers.count - 1)? as usize;
    if found.iter().any(|tier| tier.number == number) {
        return Err(words[1].error(format!("tier {number} has a section already: write each once")));
    }
    Ok(Tier { number, place: words[0].place, settings: Vec::new() })
}

fn read_setting<'a>(line: &TextLine<'a>, tier: &mut Tier<'a>, tiers: usize) -> Result<(), ImportError> {
    let word = &line.words[0];
    let Some(key) = KEYS.into_iter().find(|key| is(word, key.name())) else {
        let near = like(word.text, KEYS.iter().map(|key| key.name()));
        return Err(word.error(format!("'{}' is not a key of a tier{near}", word.text)));
    };
    let name = key.name();
    if key.is_upward() && tier.number + 1 == tiers {
        return Err(word.error(format!("tier {} is the top and has no uplinks: remove {name}", tier.number)));
    }
    if tier.get(key).is_some() {
        return Err(word.error(format!("{name} is set twice in tier {}: set it once", tier.number)));
    }
    let words = line.expect(&[2], &format!("\"{name} VALUE\""))?;
    tier.settings.push((key, value(key, &words[1])?));
    Ok(())
}

fn value<'a>(key: TopoKey, word: &Word<'a>) -> Result<TopoSetting<'a>, ImportError> {
    let empty = setting(word.place, 0);
    let decimal = word.text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let not = |unit: &str| word.error(format!("'{}' is not a number of {unit}: write a plain number", word.text));
    match key {
        TopoKey::DownlinkSpeed => match format!("{}Gbps", word.text).parse::<Rate>() {
            Ok(rate) if decimal && rate.as_bps() > 0 => Ok(TopoSetting { rate, ..empty }),
            Ok(_) if decimal => Err(word.error("a link of zero rate never sends: write for example 100")),
            _ => Err(not("Gb/s")),
        },
        TopoKey::DownlinkLatency | TopoKey::SwitchLatency => match format!("{}ns", word.text).parse::<Span>() {
            Ok(span) if decimal && span <= Span::from_secs(1000) => Ok(TopoSetting { span, ..empty }),
            _ => Err(not("nanoseconds")),
        },
        TopoKey::QueueUp | TopoKey::QueueDown => Ok(setting(word.place, word.whole(key.name(), 0, u32::MAX)?)),
        TopoKey::RadixUp | TopoKey::RadixDown | TopoKey::Oversubscribed | TopoKey::Bundle => {
            Ok(setting(word.place, word.whole(key.name(), 1, 65_535)?))
        }
    }
}

fn setting(place: FilePlace<'_>, count: u32) -> TopoSetting<'_> {
    TopoSetting { place, count, rate: Rate::from_bps(0), span: Span::ZERO }
}

/// A question that names the most similar key.
fn like<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> String {
    let lower: Vec<(String, &str)> = names.map(|name| (name.to_lowercase(), name)).collect();
    let best = nearest(text, lower.iter().map(|(lower, _)| lower.as_str()));
    let name = best.and_then(|best| lower.iter().find(|(lower, _)| lower == best));
    name.map_or(String::new(), |(_, name)| format!(": did you mean {name}?"))
}
