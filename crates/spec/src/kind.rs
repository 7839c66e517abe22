//! The kind of a key's value: its type, range and form, and the check of a value against them.

use crate::document::{Origin, TomlNode, TomlValue};
use crate::text_form::Format;
use firstlight_formats::nearest;
use serde_json::{Value as Json, json};

/// The type of a value in the schema.
#[derive(Clone, Debug)]
pub struct Kind {
    /// The type of the value, with its range.
    pub class: Class,
    /// The name of the type in messages: `a time`.
    pub what: String,
    /// An example, as TOML writes it.
    pub example: String,
}

/// The type of a value with its range.
#[derive(Clone, Debug)]
pub enum Class {
    /// True or false.
    Flag,
    /// A text, of a form if there is one.
    Text(Option<TextForm>),
    /// One of these names, each with what it means.
    Name(Vec<(String, String)>),
    /// A whole number from `least` to `most`.
    Count {
        /// The smallest value.
        least: u64,
        /// The largest value.
        most: u64,
        /// The items that the number counts; may be empty.
        of: String,
    },
    /// A number.
    Number {
        /// The smallest value.
        least: f64,
        /// Whether `least` itself is too small.
        above: bool,
        /// The largest value.
        most: f64,
    },
    /// A list with a least and a largest number of values.
    List {
        /// The kind of each item.
        item: Box<Kind>,
        /// The smallest number of values.
        least: usize,
        /// The largest number of values.
        most: usize,
    },
    /// A value of one of these kinds.
    Either(Vec<Kind>),
}

/// The form of a text, and the range of the quantity that it states.
#[derive(Clone, Debug)]
pub struct TextForm {
    /// The form.
    pub format: &'static Format,
    /// The smallest value.
    pub least: Option<String>,
    /// The value must be larger than this.
    pub above: Option<String>,
    /// The largest value.
    pub most: Option<String>,
}

impl Kind {
    pub(crate) fn read(schema: &Json) -> Self {
        let class = Class::read(schema);
        let what = schema["x-type"].as_str().map_or_else(|| class.what(), String::from);
        let example = schema["examples"].get(0).map_or_else(|| class.example(), toml_of);
        let mut kind = Kind { class, what, example };
        if let Class::Text(Some(TextForm { least: Some(least), .. })) = &kind.class {
            let least = json!(least).to_string();
            if kind.check_value(&TomlValue::Text(kind.example.trim_matches('"').into())).is_err() {
                kind.example = least;
            }
        }
        kind
    }

    /// One of these names, each with what it means.
    pub(crate) fn of_names(names: Vec<(String, String)>) -> Self {
        let class = Class::Name(names);
        Kind { what: class.what(), example: class.example(), class }
    }

    /// The example as a value.
    pub(crate) fn example_json(&self) -> Json {
        let value = TomlValue::parse(&self.example, &Origin::File(0)).expect("an example is TOML");
        value
            .and_then(|value| self.check_value(&value))
            .unwrap_or_else(|problem| panic!("an example is of its own type: {problem}"))
    }

    /// Checks a value. The error says what was found and what would be right.
    pub(crate) fn check(&self, node: &TomlNode) -> Result<Json, String> {
        if let (TomlValue::Text(text), Origin::Set(_), false) = (&node.value, &node.origin, self.is_textual())
            && let Some(read) = TomlValue::parse(text.trim(), &node.origin)
        {
            // A name that looks like a number is a valid text if the value can also be a text.
            let checked = read.and_then(|value| self.check_value(&value));
            return checked.or_else(|problem| self.check_value(&node.value).map_err(|_| problem));
        }
        self.check_value(&node.value).map_err(|problem| {
            let (TomlValue::Text(text), Origin::Set(key)) = (&node.value, &node.origin) else { return problem };
            unquoted(text).map_or(problem.clone(), |bare| {
                format!("{problem}; the quotes are part of the value: write {key}={bare} without them")
            })
        })
    }

    fn check_value(&self, value: &TomlValue) -> Result<Json, String> {
        match (&self.class, value) {
            (Class::Flag, TomlValue::Flag(flag)) => Ok(json!(flag)),
            (Class::Text(None), TomlValue::Text(text)) if !text.is_empty() => Ok(json!(text)),
            (Class::Text(Some(form)), TomlValue::Text(text)) => form.check(text).map(|()| json!(text)),
            (Class::Text(Some(form)), TomlValue::Integer(_) | TomlValue::Float(_)) if form.format.is_quantity() => {
                let (what, found) = (&self.what, value.describe());
                Err(format!("expected {what}, found {found}, which has no unit: write for example {}", self.example))
            }
            (Class::Name(names), TomlValue::Text(text)) => one_of(text, names),
            (Class::Count { least, most, of }, TomlValue::Integer(n)) => count(*n, *least, *most, of),
            (Class::Number { .. }, TomlValue::Integer(n)) => self.number(*n as f64),
            (Class::Number { .. }, TomlValue::Float(x)) => self.number(*x),
            (Class::List { item, least, most }, TomlValue::List(items)) if (*least..=*most).contains(&items.len()) => {
                items.iter().map(|node| item.check_value(&node.value)).collect()
            }
            (Class::Either(kinds), value) => match kinds.iter().find(|kind| kind.takes(value)) {
                Some(kind) => kind.check_value(value).map_err(|problem| match kind.class {
                    Class::Text(Some(ref form)) if !form.format.is_quantity() => problem,
                    Class::Count { .. } | Class::Text(Some(_)) => format!("{problem}, or {}", other_than(kind, kinds)),
                    _ => problem,
                }),
                None => Err(self.unexpected(value)),
            },
            _ => Err(self.unexpected(value)),
        }
    }

    /// Whether a default is one of the values: [`Kind::check`] takes it as TOML writes it.
    pub fn takes_default(&self, value: &Json) -> bool {
        let value = TomlValue::parse(&toml_of(value), &Origin::File(0));
        value.is_some_and(|value| value.is_ok_and(|value| self.check_value(&value).is_ok()))
    }

    fn unexpected(&self, value: &TomlValue) -> String {
        format!("expected {}, found {}: write for example {}", self.what, value.describe(), self.example)
    }

    fn number(&self, x: f64) -> Result<Json, String> {
        let Class::Number { least, above, most } = self.class else { unreachable!("a number is asked for") };
        let low = if above { x > least } else { x >= least };
        match above {
            _ if low && x <= most => Ok(json!(x)),
            true => Err(format!("{x} is out of range: use more than {least}, at most {most}")),
            false => Err(format!("{x} is out of range: use {least} to {most}")),
        }
    }

    /// Whether a value of TOML is of the type, its range apart.
    fn takes(&self, value: &TomlValue) -> bool {
        matches!(
            (&self.class, value),
            (Class::Flag, TomlValue::Flag(_))
                | (Class::Count { .. }, TomlValue::Integer(_))
                | (Class::Text(_) | Class::Name(_), TomlValue::Text(_))
                | (Class::List { .. }, TomlValue::List(_))
        )
    }

    /// Whether TOML writes a value as a text.
    fn is_textual(&self) -> bool {
        matches!(self.class, Class::Text(_) | Class::Name(_))
    }
}

impl Class {
    fn read(schema: &Json) -> Self {
        // Names, or a text that is a name of the user's.
        if let Some(names) = names(&schema["anyOf"][0]).filter(|_| schema["anyOf"][1]["pattern"].is_string()) {
            return Class::Name(names);
        }
        if let Some(kinds) = schema["anyOf"].as_array() {
            return Class::Either(kinds.iter().map(Kind::read).collect());
        }
        if let Some(names) = names(schema) {
            return Class::Name(names);
        }
        let size = |keyword, otherwise| schema[keyword].as_u64().map_or(otherwise, |n| n as usize);
        match schema["type"].as_str() {
            Some("boolean") => Class::Flag,
            Some("string") => Class::Text(TextForm::read(schema)),
            Some("integer") => Class::Count {
                least: schema["minimum"].as_u64().unwrap_or(0),
                most: schema["maximum"].as_u64().expect("a whole number has a largest value"),
                of: schema["x-of"].as_str().unwrap_or_default().into(),
            },
            Some("number") => {
                let above = schema["exclusiveMinimum"].as_f64();
                let least = above.or(schema["minimum"].as_f64()).expect("a number has a smallest value");
                let most = schema["maximum"].as_f64().expect("a number has a largest value");
                Class::Number { least, above: above.is_some(), most }
            }
            Some("array") => {
                let mut item = Box::new(Kind::read(&schema["items"]));
                item.example = schema["examples"][0].get(0).map_or(item.example, toml_of);
                Class::List { item, least: size("minItems", 0), most: size("maxItems", usize::MAX) }
            }
            other => panic!("no key has values of the type {other:?}: {schema}"),
        }
    }

    fn what(&self) -> String {
        match self {
            Class::Flag => "true or false".into(),
            Class::Text(None) => "a text".into(),
            Class::Text(Some(form)) => form.format.what.into(),
            Class::Name(names) => format!("one of {}", list(names)),
            Class::Count { of, .. } if of.is_empty() => "a whole number".into(),
            Class::Count { of, .. } => format!("a whole number of {of}"),
            Class::Number { .. } => "a number".into(),
            Class::List { .. } => "a list".into(),
            Class::Either(kinds) => kinds.iter().map(|kind| kind.what.as_str()).collect::<Vec<_>>().join(" or "),
        }
    }

    fn example(&self) -> String {
        match self {
            Class::Flag => "true".into(),
            Class::Text(_) => "\"my-experiment\"".into(),
            Class::Name(names) => format!("\"{}\"", names[0].0),
            Class::Count { least, .. } => (*least).max(1).to_string(),
            Class::Number { least, most, .. } => if least + 0.5 <= *most { least + 0.5 } else { *most }.to_string(),
            Class::List { item, .. } => format!("[{}]", item.example),
            Class::Either(kinds) => kinds[0].example.clone(),
        }
    }
}

impl TextForm {
    fn read(schema: &Json) -> Option<Self> {
        let name = schema["format"].as_str()?;
        let format = Format::named(name).unwrap_or_else(|| panic!("there is no form of texts called {name}"));
        let bound = |keyword: &str| schema[keyword].as_str().map(String::from);
        Some(TextForm { format, least: bound("x-least"), above: bound("x-above"), most: bound("x-most") })
    }

    fn check(&self, text: &str) -> Result<(), String> {
        let parse = self.format.parse;
        let order = parse(text)?;
        let bound = |bound: &Option<String>| bound.as_ref().map(|text| parse(text).expect("a bound is of the form"));
        if bound(&self.above).is_some_and(|above| order <= above) {
            return Err(self.format.zero.into());
        }
        let (low, high) = (bound(&self.least), bound(&self.most));
        if low.is_none_or(|low| order >= low) && high.is_none_or(|high| order <= high) {
            return Ok(());
        }
        let text = text.trim();
        Err(match (&self.least, &self.most) {
            (Some(least), Some(most)) => format!("{text} is out of range: use {least} to {most}"),
            (Some(least), None) => format!("{text} is out of range: use at least {least}"),
            _ => format!("{text} is out of range: use at most {}", self.most.as_deref().unwrap_or_default()),
        })
    }
}

/// The text between the quotes of a text that begins and ends with one.
fn unquoted(text: &str) -> Option<&str> {
    let inner = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\''))
}

/// The other kinds that a value can have.
fn other_than(kind: &Kind, kinds: &[Kind]) -> String {
    let others = kinds.iter().filter(|other| !std::ptr::eq(*other, kind));
    others.map(|other| other.what.as_str()).collect::<Vec<_>>().join(" or ")
}

/// A value as TOML writes it.
pub(crate) fn toml_of(value: &Json) -> String {
    match value {
        Json::Array(items) => format!("[{}]", items.iter().map(toml_of).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// The names that a schema allows, each with what it means.
fn names(schema: &Json) -> Option<Vec<(String, String)>> {
    if let Some(names) = schema["enum"].as_array() {
        return Some(names.iter().filter_map(Json::as_str).map(|name| (name.into(), String::new())).collect());
    }
    let constants = schema["oneOf"].as_array()?;
    let text = |schema: &Json, keyword: &str| schema[keyword].as_str().unwrap_or_default().to_string();
    let mut names = vec![];
    for constant in constants {
        match constant["enum"].as_array() {
            // Names without a description are one entry.
            Some(several) => names.extend(several.iter().filter_map(Json::as_str).map(|n| (n.into(), String::new()))),
            None => names.push((text(constant, "const"), text(constant, "description"))),
        }
    }
    Some(names)
}

fn list(names: &[(String, String)]) -> String {
    names.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
}

fn one_of(text: &str, names: &[(String, String)]) -> Result<Json, String> {
    if names.iter().any(|(name, _)| name == text) {
        return Ok(json!(text));
    }
    Err(not_one_of(text, names.iter().map(|(name, _)| name.as_str())))
}

/// The message for a name that is not one of these.
pub(crate) fn not_one_of<'a>(text: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    let near = nearest(text, names.clone()).map_or(String::new(), |name| format!(": did you mean \"{name}\"?"));
    format!("'{text}' is not one of {}{near}", names.collect::<Vec<_>>().join(", "))
}

fn count(n: i64, least: u64, most: u64, of: &str) -> Result<Json, String> {
    match u64::try_from(n) {
        Ok(n) if (least..=most).contains(&n) => Ok(json!(n)),
        _ => {
            let of = if of.is_empty() { String::new() } else { format!(" {of}") };
            Err(format!("{n}{of} is out of range: use {least} to {most}"))
        }
    }
}
