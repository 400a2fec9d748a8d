//! Units at the border: the name of a field carries the unit, its value is a bare number.

use serde::{Deserialize, Deserializer, Serializer, de};
use tickpong_units::{Nanos, PayloadLen, Rate, Seed};

macro_rules! bare_number {
    ($module:ident, $unit:ty, $to:expr, $from:expr) => {
        pub(crate) mod $module {
            use super::*;

            pub(crate) fn serialize<S: Serializer>(value: &$unit, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_u64($to(*value))
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$unit, D::Error> {
                $from(u64::deserialize(deserializer)?).map_err(de::Error::custom)
            }
        }
    };
}

bare_number!(nanos, Nanos, Nanos::get, |ns| Ok::<_, &str>(Nanos::new(ns)));
bare_number!(payload, PayloadLen, |len: PayloadLen| len.get() as u64, PayloadLen::new);
bare_number!(seed, Seed, Seed::get, |n| Ok::<_, &str>(Seed::new(n)));

pub(crate) mod rate {
    use super::{Deserialize, Deserializer, Rate, Serializer, de};

    #[expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub(crate) fn serialize<S: Serializer>(rate: &Option<Rate>, serializer: S) -> Result<S::Ok, S::Error> {
        match rate {
            Some(rate) => serializer.serialize_some(&rate.get()),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Rate>, D::Error> {
        let hz = Option::<u64>::deserialize(deserializer)?;
        hz.map(|hz| Rate::new(hz).ok_or_else(|| de::Error::custom("a rate of zero"))).transpose()
    }
}
