//! The forms of texts that values can have. Each is parsed by one function, the `from_str` of its type.

use crate::host_name::HostName;
use crate::settings::{KernelVersion, RouteAttributes, SysctlText};
use crate::tables::{ExperimentName, FileName, PacedStep};
use firstlight_units::{Bytes, Rate, Span};
use std::fmt::Display;
use std::str::FromStr;

/// The form of a text.
#[derive(Debug)]
pub struct Format {
    /// The name, as schemas have it in `format`.
    pub name: &'static str,
    /// The name of a text of this form in messages.
    pub what: &'static str,
    /// The message for a quantity that must be above zero; empty for forms that are no quantities.
    pub zero: &'static str,
    /// Reads a text. Returns its position in the order of all such texts, for ranges, or the text's problem.
    pub parse: fn(&str) -> Result<u64, String>,
}

const FORMATS: &[Format] = &[
    Format {
        name: "time",
        what: "a time",
        zero: "must be longer than zero",
        parse: |text| read::<Span>(text).map(Span::as_ps),
    },
    Format {
        name: "rate",
        what: "a rate",
        zero: "a link of zero rate never sends: write for example \"10Gbps\"",
        parse: |text| read::<Rate>(text).map(Rate::as_bps),
    },
    Format {
        name: "size",
        what: "a size",
        zero: "must be above zero",
        parse: |text| read::<Bytes>(text).map(Bytes::get),
    },
    plain("hosts", "hosts", |text| read::<HostName>(text).map(|_| 0)),
    plain("sysctl", "a text", |text| read::<SysctlText>(text).map(|_| 0)),
    plain("route", "attributes of a route", |text| read::<RouteAttributes>(text).map(|_| 0)),
    plain("kernel-version", "a version of Linux, as a text", |text| read::<KernelVersion>(text).map(|_| 0)),
    plain("name", "a text", |text| read::<ExperimentName>(text).map(|_| 0)),
    plain("file-name", "a text", |text| read::<FileName>(text).map(|_| 0)),
    plain("paced-step", "a text", |text| read::<PacedStep>(text).map(|_| 0)),
];

const fn plain(name: &'static str, what: &'static str, parse: fn(&str) -> Result<u64, String>) -> Format {
    Format { name, what, zero: "", parse }
}

fn read<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

impl Format {
    /// The form of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.name == name)
    }

    /// Whether the text is a number with a unit.
    pub(crate) fn is_quantity(&self) -> bool {
        !self.zero.is_empty()
    }
}

/// Makes a type that is written as a text, by its `FromStr` and `Display`, a value of keys.
macro_rules! text_value {
    ($Type:ident, format: $format:literal, pattern: $pattern:expr, example: $example:literal) => {
        impl serde::Serialize for $Type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $Type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
                text.parse().map_err(<D::Error as serde::de::Error>::custom)
            }
        }

        impl schemars::JsonSchema for $Type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($Type).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string", "format": $format, "pattern": $pattern, "examples": [$example]
                })
            }
        }
    };
}
pub(crate) use text_value;
