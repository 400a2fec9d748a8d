//! A quantile as it stands in a file.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use tickpong_stats::Value;
use tickpong_units::Nanos;

/// A quantile in nanoseconds: a number; `"inf"` where it falls among messages never answered; `null` where the data cannot say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Figure {
    /// So many nanoseconds.
    Finite(u64),
    /// Beyond every answered message.
    Infinite,
    /// No observation lies beyond it.
    Unsupported,
}

impl Figure {
    /// The nanoseconds, where there are some.
    pub const fn finite(self) -> Option<u64> {
        match self {
            Self::Finite(ns) => Some(ns),
            Self::Infinite | Self::Unsupported => None,
        }
    }
}

impl From<Value> for Figure {
    fn from(value: Value) -> Self {
        match value {
            Value::Finite(span) => Self::Finite(span.get()),
            Value::Infinite => Self::Infinite,
            Value::Unsupported => Self::Unsupported,
        }
    }
}

impl From<Figure> for Value {
    fn from(figure: Figure) -> Self {
        match figure {
            Figure::Finite(ns) => Self::Finite(Nanos::new(ns)),
            Figure::Infinite => Self::Infinite,
            Figure::Unsupported => Self::Unsupported,
        }
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Finite(ns) => serializer.serialize_u64(*ns),
            Self::Infinite => serializer.serialize_str("inf"),
            Self::Unsupported => serializer.serialize_none(),
        }
    }
}

impl<'de> Deserialize<'de> for Figure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::Null => Ok(Self::Unsupported),
            serde_json::Value::String(text) if text == "inf" => Ok(Self::Infinite),
            serde_json::Value::Number(n) => {
                n.as_u64().map(Self::Finite).ok_or_else(|| de::Error::custom("a quantile that is no whole nanoseconds"))
            }
            other => Err(de::Error::custom(format!("a quantile that is neither a number, \"inf\" nor null: {other}"))),
        }
    }
}

impl JsonSchema for Figure {
    fn schema_name() -> Cow<'static, str> {
        "Figure".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "nanoseconds; \"inf\" where the rank falls among messages never answered; null where the data cannot say",
            "anyOf": [{ "type": "integer", "minimum": 0 }, { "const": "inf" }, { "type": "null" }]
        })
    }
}
