//! How a receiver tunes its buffer: `true`, `false` or `"2012"` as the value of a key.

/// How a receiver tunes its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Autotune {
    /// The buffer is fixed.
    Off,
    /// The buffer is tuned as in Linux today.
    On,
    /// The buffer is tuned as in kernels of 2012.
    Year2012,
}

#[cfg(feature = "spec")]
mod value {
    use super::Autotune;
    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
    use std::borrow::Cow;

    const YEAR: &str = "2012";

    /// The value as it is written.
    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Written<'a> {
        Flag(bool),
        #[serde(borrow)]
        Text(Cow<'a, str>),
    }

    impl Serialize for Autotune {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let written = match self {
                Autotune::Off => Written::Flag(false),
                Autotune::On => Written::Flag(true),
                Autotune::Year2012 => Written::Text(YEAR.into()),
            };
            written.serialize(serializer)
        }
    }

    impl<'de> Deserialize<'de> for Autotune {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            match Written::deserialize(deserializer)? {
                Written::Flag(true) => Ok(Autotune::On),
                Written::Flag(false) => Ok(Autotune::Off),
                Written::Text(text) if text == YEAR => Ok(Autotune::Year2012),
                Written::Text(text) => Err(de::Error::custom(format!("'{text}' is no way of tuning"))),
            }
        }
    }

    impl JsonSchema for Autotune {
        fn schema_name() -> Cow<'static, str> {
            "Autotune".into()
        }

        fn inline_schema() -> bool {
            true
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({
                "anyOf": [{ "type": "boolean" }, { "enum": [YEAR] }], "x-type": "true, false or \"2012\""
            })
        }
    }
}
