//! `intervals.csv`: one row an interval.

mod table;

use crate::{Ends, Figure, Resources, Summary};

pub use table::IntervalTable;

/// The figures of one interval of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IntervalRow {
    /// From zero, warm-up included.
    pub interval: u64,
    /// Its begin, from the start of the run.
    pub start_ns: u64,
    /// How much of it was played; the last may be shorter than the others.
    pub length_ns: u64,
    /// Whether it belongs to the warm-up.
    pub warm_up: bool,
    /// Messages that the plan wanted sent in it.
    pub scheduled: u64,
    /// Those that the kernel took.
    pub sent: u64,
    /// Answered in time.
    pub answered: u64,
    /// Never answered.
    pub lost: u64,
    /// Answered after the deadline.
    pub late: u64,
    /// Not sent.
    pub unsent: u64,
    /// Further answers.
    pub duplicate: u64,
    /// Answers after an answer to a later message.
    pub reordered: u64,
    /// Messages of it that were sent, however late, a second of the interval: a pinger that fell behind shows in their lateness.
    pub achieved_rate_hz: Option<f64>,
    /// Received less intended.
    pub supply_to_receive: Option<Summary>,
    /// Received less sent.
    pub rtt: Option<Summary>,
    /// Sent less intended.
    pub send_lateness: Option<Summary>,
    /// Sends that went out when the next message was already due.
    pub fall_behinds: u64,
    /// What both ends used in this interval; where that is not known, the next that is known holds it, too. The pinger's last is up to the
    /// end of its threads, so that all of its add up. The reflector's is that of its interval of the same number.
    pub used: Ends<Resources>,
}

impl IntervalRow {
    const OWN_COLUMNS: &str = "interval,start_ns,length_ns,warm_up,scheduled,sent,answered,lost,late,unsent,duplicate,reordered,\
        achieved_rate_hz,supply_to_receive_mean_ns,supply_to_receive_p50_ns,supply_to_receive_p99_ns,supply_to_receive_p999_ns,\
        supply_to_receive_max_ns,rtt_mean_ns,rtt_p50_ns,rtt_p99_ns,rtt_p999_ns,rtt_max_ns,send_lateness_p50_ns,send_lateness_p99_ns,\
        send_lateness_max_ns,fall_behinds";

    /// The names of the columns.
    pub fn header() -> String {
        let of = |end: &'static str| Resources::COLUMNS.map(|column| format!(",{end}_{column}")).concat();
        format!("{}{}{}", Self::OWN_COLUMNS, of("pinger"), of("reflector"))
    }

    /// The row, without its end of line. What is not known stays empty; an infinite quantile is `inf`.
    pub fn to_csv(&self) -> String {
        let mut row = format!(
            "{},{},{},{},{},{},{},{},{},{},{},{},{}",
            self.interval,
            self.start_ns,
            self.length_ns,
            u8::from(self.warm_up),
            self.scheduled,
            self.sent,
            self.answered,
            self.lost,
            self.late,
            self.unsent,
            self.duplicate,
            self.reordered,
            number(self.achieved_rate_hz.map(|hz| format!("{hz:.1}"))),
        );
        let mut field = |text: String| {
            row.push(',');
            row.push_str(&text);
        };
        for summary in [&self.supply_to_receive, &self.rtt] {
            let summary = summary.as_ref();
            field(number(summary.and_then(|s| s.mean).map(|mean| format!("{mean:.1}"))));
            field(figure(summary.map(|s| s.p50)));
            field(figure(summary.map(|s| s.p99)));
            field(figure(summary.map(|s| s.p999)));
            field(number(summary.and_then(|s| s.max)));
        }
        let lateness = self.send_lateness.as_ref();
        field(figure(lateness.map(|s| s.p50)));
        field(figure(lateness.map(|s| s.p99)));
        field(number(lateness.and_then(|s| s.max)));
        field(self.fall_behinds.to_string());
        for used in [self.used.pinger, self.used.reflector] {
            let fields = used.map_or([None; 9], |used| used.fields().map(Some));
            for known in fields {
                field(number(known));
            }
        }
        row
    }
}

fn number<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn figure(figure: Option<Figure>) -> String {
    match figure {
        Some(Figure::Finite(ns)) => ns.to_string(),
        Some(Figure::Infinite) => "inf".to_owned(),
        Some(Figure::Unsupported) | None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_field_a_column() {
        let columns = IntervalRow::header().split(',').count();
        assert_eq!(IntervalRow::default().to_csv().split(',').count(), columns);
    }

    #[test]
    fn a_row_says_what_is_known_and_leaves_out_what_is_not() {
        let summary = Summary {
            count: 9,
            denominator: 10,
            min: Some(1),
            mean: Some(2.25),
            sd: None,
            p50: Figure::Finite(2),
            p90: Figure::Infinite,
            p99: Figure::Infinite,
            p999: Figure::Unsupported,
            p9999: Figure::Unsupported,
            max: Some(4),
            max_at_interval: Some(3),
            max_at_ns: Some(5),
            clamped: 0,
            thin: vec![],
        };
        let row = IntervalRow {
            interval: 3,
            scheduled: 10,
            lost: 1,
            achieved_rate_hz: Some(10.0),
            supply_to_receive: Some(summary),
            ..IntervalRow::default()
        };
        insta::assert_snapshot!(row.to_csv());
    }
}
