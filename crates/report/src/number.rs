//! How numbers are printed.

use tickpong_record::Figure;

/// What stands where there is no number.
pub(crate) const ABSENT: &str = "–";

/// From here on, digits in full say less than a power of ten.
const POWERS_FROM: f64 = 1e10;

/// More than this is no count of a run: a message a nanosecond for a week is less.
const COUNTS_BELOW: u64 = 1_000_000_000_000_000;

/// A count, in groups of three; as a power of ten where no run can have counted so far.
#[expect(clippy::cast_precision_loss, reason = "only where four digits are printed")]
pub(crate) fn count(n: u64) -> String {
    if n < COUNTS_BELOW { grouped(&n.to_string()) } else { format!("{:.3e}", n as f64) }
}

/// Nanoseconds, exact or a mean, as microseconds to four digits: a histogram's cells hold no more. Whole above that.
///
/// A longer span is never printed as a smaller number.
pub(crate) fn micros(ns: f64) -> String {
    let us = ns / 1e3;
    if !us.is_finite() {
        return ABSENT.to_owned();
    }
    if us.abs() >= POWERS_FROM {
        return format!("{us:.3e}");
    }
    let fits = |decimals: &usize| format!("{us:.decimals$}").trim_start_matches('-').len() <= "1.234".len();
    let decimals = [3, 2, 1].into_iter().find(fits).unwrap_or(0);
    decimal(us, decimals)
}

/// The same of whole nanoseconds.
#[expect(clippy::cast_precision_loss, reason = "four digits are printed")]
pub(crate) fn whole_micros(ns: u64) -> String {
    micros(ns as f64)
}

/// A quantile of nanoseconds, as microseconds.
pub(crate) fn quantile(figure: Figure) -> String {
    match figure {
        Figure::Finite(ns) => whole_micros(ns),
        Figure::Infinite => "inf".to_owned(),
        Figure::Unsupported => ABSENT.to_owned(),
    }
}

/// Nanoseconds as microseconds, without the zeros at the end: for a round number.
pub(crate) fn round_micros(ns: u64) -> String {
    let (whole, rest) = (count(ns / 1_000), format!(".{:03}", ns % 1_000));
    whole + rest.trim_end_matches('0').trim_end_matches('.')
}

/// A number with so many decimals, its whole part in groups of three.
pub(crate) fn decimal(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return ABSENT.to_owned();
    }
    if value.abs() >= POWERS_FROM {
        return format!("{value:.3e}");
    }
    let text = format!("{value:.decimals$}");
    match text.split_once('.') {
        Some((whole, rest)) => format!("{}.{rest}", grouped(whole)),
        None => grouped(&text),
    }
}

/// Bytes, in the largest binary unit that leaves a whole part.
#[expect(clippy::cast_precision_loss, reason = "one decimal is printed")]
pub(crate) fn bytes(n: u64) -> String {
    let units = [(1_u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| n >= *unit) {
        Some((unit, name)) => format!("{} {name}", decimal(n as f64 / unit as f64, 1)),
        None => format!("{n} bytes"),
    }
}

/// `part` of `whole` in per cent, cut and not rounded: what is not all never prints as 100.
pub(crate) fn share(part: u128, whole: u128) -> String {
    let ten_thousandths = part.saturating_mul(1_000_000).checked_div(whole).unwrap_or(0);
    format!("{}.{:04} %", ten_thousandths / 10_000, ten_thousandths % 10_000)
}

fn grouped(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let mut text = sign.to_owned();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn microseconds_have_four_digits_or_are_whole() {
        let rows = [
            (0.0, "0.000"),
            (1.0, "0.001"),
            (9_999.4, "9.999"),
            (9_999.6, "10.00"),
            (99_996.0, "100.0"),
            (999_960.0, "1,000"),
            (1_234_567.0, "1,235"),
            (60e9, "60,000,000"),
            (1.8e19, "1.800e16"),
            (-1_500.0, "-1.500"),
            (f64::NAN, "–"),
            (f64::INFINITY, "–"),
        ];
        for (ns, text) in rows {
            assert_eq!(micros(ns), text);
        }
    }

    #[test]
    fn numbers_are_grouped_and_carry_units() {
        assert_eq!(count(u64::MAX), "1.845e19");
        assert_eq!((count(999), count(1_000)), ("999".into(), "1,000".into()));
        assert_eq!(decimal(99_999.96, 1), "100,000.0");
        assert_eq!((bytes(1_023), bytes(212_992)), ("1023 bytes".into(), "208.0 KiB".into()));
        assert_eq!(bytes(u64::MAX), "16,777,216.0 TiB");
        assert_eq!((round_micros(1_250), round_micros(13_000_000)), ("1.25".into(), "13,000".into()));
        assert_eq!((round_micros(7), round_micros(100_000)), ("0.007".into(), "100".into()));
    }

    #[test]
    fn nearly_all_is_not_all() {
        assert_eq!(share(9_999_999, 10_000_000), "99.9999 %");
        assert_eq!(share(1, 1), "100.0000 %");
        assert_eq!(share(0, 0), "0.0000 %");
    }

    proptest! {
        #[test]
        fn a_longer_span_is_not_printed_smaller(a in 0_u64..1 << 42, b in 0_u64..1 << 42) {
            let read = |ns| whole_micros(ns).replace(',', "").parse::<f64>().unwrap();
            prop_assert!(read(a.min(b)) <= read(a.max(b)));
        }
    }
}
