//! Quantities as the values of keys: a text with its unit in TOML and JSON, and what a JSON Schema says of it.

use crate::{BINARY_BYTES, BYTES, Bytes, RATES, Rate, SPANS, Span, Units, names};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};
use std::borrow::Cow;

/// A decimal number with one of these units behind it, as a regular expression.
fn pattern(units: &[Units]) -> String {
    format!(r"^\s*[0-9_]+(\.[0-9_]+)?\s*({})\s*$", names(units, "|"))
}

macro_rules! quantity {
    ($Type:ident, $format:literal, $example:literal, $units:expr, {$($bound:tt)*}) => {
        impl Serialize for $Type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $Type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Cow::<str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
            }
        }

        impl JsonSchema for $Type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($Type).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string", "format": $format, "pattern": pattern($units), "examples": [$example], $($bound)*
                })
            }
        }
    };
}

quantity!(Span, "time", "180us", &[SPANS], {});
quantity!(Rate, "rate", "10Gbps", &[RATES], { "x-above": "0bps" });
quantity!(
    Bytes, "size", "9000B", &[BYTES, BINARY_BYTES],
    { "x-least": "1B", "x-most": "1152921504606846976B" }
);
