//! Which rate to try next: a search for the highest one that is sustained. Pure; it neither plays nor waits.
//!
//! A rate above capacity fails every time, because its backlog grows; a rate below fails now and then, because something else stole the
//! machine. So a failure is never believed alone: **a rate fails when two of at most three runs fail**. One run that holds is enough to go
//! on upwards, and the rate that is reported at the end has held twice.

use tickpong_units::Rate;

/// Runs that settle a rate one way or the other.
const VOTES: usize = 2;
/// Failed steps in a row that end a stepped search.
const LAST_STEPS: usize = 3;

/// Which candidates a search tries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Strategy {
    /// Doubles from the lowest until a rate fails, then halves what lies between, by ratio.
    Bisect {
        /// The first candidate.
        from: Rate,
        /// Nothing above this is tried.
        to: Rate,
        /// The search ends when the lowest that failed is at most so much above the highest that held.
        resolution: f64,
    },
    /// Every step in turn, as published results do.
    Steps {
        /// The first candidate.
        from: Rate,
        /// Nothing above this is tried.
        to: Rate,
        /// From one to the next.
        step: Rate,
    },
}

/// What counts as sustained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Messages lost or late, at most, as a share of those scheduled.
    pub loss: f64,
    /// How far achieved may stay below offered, as a share; also how fast a backlog may grow, in seconds a second, which is the same thing.
    pub shortfall: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { loss: 0.0, shortfall: 0.001 }
    }
}

impl Strategy {
    /// Of a bisection, unless asked otherwise.
    pub const RESOLUTION: f64 = 0.02;

    /// The most runs that the search takes: it ends there with what it knows.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few dozens")]
    pub fn most_runs(&self) -> u64 {
        let candidates = match *self {
            Self::Bisect { from, to, resolution } => {
                let doublings = (ratio(to, from).log2().ceil() as u64).max(1) + 1;
                doublings + (2.0_f64.ln() / resolution.ln_1p()).log2().ceil().max(0.0) as u64
            }
            Self::Steps { from, to, step } => (to.get() - from.get()) / step.get() + 1,
        };
        candidates * (2 * VOTES as u64 - 1)
    }

    fn ends(&self) -> (Rate, Rate) {
        match *self {
            Self::Bisect { from, to, .. } | Self::Steps { from, to, .. } => (from, to),
        }
    }
}

/// One rate, and how often it held and failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Candidate {
    /// The rate.
    pub rate: Rate,
    /// Runs in which it was sustained.
    pub held: usize,
    /// Runs in which it was not.
    pub failed: usize,
}

/// What is known of a rate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Standing {
    /// One run held, none failed.
    Held,
    /// Held in two runs of at most three.
    Sure,
    /// Failed in two of at most three.
    Failed,
    /// Another run decides.
    Open,
}

impl Candidate {
    fn standing(&self) -> Standing {
        match (self.held, self.failed) {
            (held, _) if held >= VOTES => Standing::Sure,
            (_, failed) if failed >= VOTES => Standing::Failed,
            (1, 0) => Standing::Held,
            _ => Standing::Open,
        }
    }

    fn holds(&self) -> bool {
        matches!(self.standing(), Standing::Held | Standing::Sure)
    }
}

/// Where the highest sustained rate lies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Boundary {
    /// The highest rate that held; `None` when none did.
    pub sustained: Option<Rate>,
    /// The lowest rate above it that failed; `None` when none did, up to the end of the search.
    pub failed: Option<Rate>,
}

/// A search under way.
#[derive(Clone, Debug)]
pub struct Search {
    strategy: Strategy,
    /// By rate.
    tried: Vec<Candidate>,
    runs: u64,
}

impl Search {
    /// One that has tried nothing.
    pub fn new(strategy: Strategy) -> Self {
        Self { strategy, tried: Vec::new(), runs: 0 }
    }

    /// The rate of the next run; `None` when the search is over.
    pub fn next(&self) -> Option<Rate> {
        if self.runs >= self.strategy.most_runs() {
            return None;
        }
        if let Some(open) = self.tried.iter().find(|candidate| candidate.standing() == Standing::Open) {
            return Some(open.rate);
        }
        let further = match self.strategy {
            Strategy::Bisect { from, to, resolution } => self.bisect(from, to, resolution),
            Strategy::Steps { from, to, step } => self.step(from, to, step),
        };
        further.or_else(|| self.unsure())
    }

    /// Takes in how a run at `rate` went.
    pub fn tell(&mut self, rate: Rate, held: bool) {
        self.runs += 1;
        let at = self.tried.binary_search_by_key(&rate, |candidate| candidate.rate).unwrap_or_else(|at| {
            self.tried.insert(at, Candidate { rate, held: 0, failed: 0 });
            at
        });
        let candidate = &mut self.tried[at];
        *(if held { &mut candidate.held } else { &mut candidate.failed }) += 1;
    }

    /// What is known by now.
    pub fn boundary(&self) -> Boundary {
        let sustained = self.tried.iter().rev().find(|candidate| candidate.holds()).map(|candidate| candidate.rate);
        let is_above = |candidate: &&Candidate| sustained.is_none_or(|sustained| candidate.rate > sustained);
        let failed = self.tried.iter().filter(is_above).find(|candidate| !candidate.holds());
        Boundary { sustained, failed: failed.map(|candidate| candidate.rate) }
    }

    /// Every rate that was tried, in order.
    pub fn tried(&self) -> &[Candidate] {
        &self.tried
    }

    /// Whether the end of the range was reached before any rate failed.
    pub fn is_open_above(&self) -> bool {
        self.boundary().sustained == Some(self.strategy.ends().1)
    }

    fn bisect(&self, from: Rate, to: Rate, resolution: f64) -> Option<Rate> {
        let low = |failed: Rate| self.tried.iter().rev().find(|known| known.holds() && known.rate < failed);
        let failed = self.tried.iter().find(|known| known.standing() == Standing::Failed).map(|known| known.rate);
        match failed {
            None => match self.tried.last() {
                None => Some(from),
                Some(top) if top.rate < to => Rate::new(top.rate.get().saturating_mul(2).min(to.get())),
                Some(_) => None,
            },
            Some(failed) => {
                let low = low(failed)?.rate;
                if ratio(failed, low) <= 1.0 + resolution { None } else { between(low, failed) }
            }
        }
    }

    fn step(&self, from: Rate, to: Rate, step: Rate) -> Option<Rate> {
        let failures = self.tried.iter().rev().take_while(|known| known.standing() == Standing::Failed).count();
        let next = self.tried.last().map_or(from.get(), |last| last.rate.get().saturating_add(step.get()));
        if failures >= LAST_STEPS || next > to.get() { None } else { Rate::new(next) }
    }

    /// The answer so far, where a single run speaks for it.
    fn unsure(&self) -> Option<Rate> {
        let answer = self.tried.iter().rev().find(|candidate| candidate.holds())?;
        (answer.standing() == Standing::Held).then_some(answer.rate)
    }
}

#[expect(clippy::cast_precision_loss, reason = "rates are far below 2^53")]
fn ratio(a: Rate, b: Rate) -> f64 {
    a.get() as f64 / b.get() as f64
}

/// The rate in the middle, by ratio, to three digits; `None` where there is none between.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates are far below 2^53"
)]
fn between(low: Rate, high: Rate) -> Option<Rate> {
    let middle = (low.get() as f64 * high.get() as f64).sqrt();
    let digit = 10.0_f64.powf(middle.log10().floor() - 2.0).max(1.0);
    let is_between = |hz: &u64| *hz > low.get() && *hz < high.get();
    let rounded = ((middle / digit).round() * digit).round() as u64;
    [rounded, middle.round() as u64].iter().find(|hz| is_between(hz)).and_then(|&hz| Rate::new(hz))
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    fn hz(hz: u64) -> Rate {
        Rate::new(hz).unwrap()
    }

    fn bisect(from: u64, to: u64) -> Strategy {
        Strategy::Bisect { from: hz(from), to: hz(to), resolution: Strategy::RESOLUTION }
    }

    /// Plays against a machine that answers by rate and number of the run.
    fn search(strategy: Strategy, mut holds: impl FnMut(Rate, u64) -> bool) -> (Search, Vec<u64>) {
        let (mut search, mut order) = (Search::new(strategy), Vec::new());
        while let Some(rate) = search.next() {
            order.push(rate.get());
            search.tell(rate, holds(rate, order.len() as u64));
        }
        (search, order)
    }

    #[test]
    fn it_doubles_and_then_halves() {
        let (search, order) = search(bisect(100_000, 10_000_000), |rate, _| rate.get() <= 230_000);
        assert_eq!(order[..5], [100_000, 200_000, 400_000, 400_000, 283_000]);
        let Boundary { sustained, failed } = search.boundary();
        let (sustained, failed) = (sustained.unwrap().get(), failed.unwrap().get());
        assert!(sustained <= 230_000 && failed > 230_000 && failed * 100 <= sustained * 102, "{sustained} {failed}");
        assert_eq!(order.last(), Some(&sustained), "the answer has held twice");
    }

    #[test]
    fn the_ends_of_the_range_are_answers() {
        let (all, order) = search(bisect(100, 350), |_, _| true);
        assert_eq!((order, all.boundary().failed), (vec![100, 200, 350, 350], None));
        assert!(all.is_open_above());
        let (none, order) = search(bisect(100, 350), |_, _| false);
        assert_eq!((order, none.boundary()), (vec![100, 100], Boundary { sustained: None, failed: Some(hz(100)) }));
    }

    #[test]
    fn steps_end_after_three_that_failed() {
        let steps = Strategy::Steps { from: hz(100), to: hz(2_000), step: hz(100) };
        let (found, order) = search(steps, |rate, _| rate.get() <= 300);
        assert_eq!(order, [100, 200, 300, 400, 400, 500, 500, 600, 600, 300]);
        assert_eq!(found.boundary(), Boundary { sustained: Some(hz(300)), failed: Some(hz(400)) });
        let (found, _) = search(steps, |_, _| true);
        assert_eq!(found.boundary(), Boundary { sustained: Some(hz(2_000)), failed: None });
    }

    #[test]
    fn an_answer_that_fails_when_it_is_asked_again_is_none() {
        // 200 holds once, by luck.
        let (found, order) = search(bisect(100, 200), |rate, run| rate.get() < 200 || run == 2);
        assert_eq!(order[..4], [100, 200, 200, 200]);
        let Boundary { sustained, failed } = found.boundary();
        assert!(sustained.unwrap().get() >= 194 && failed.unwrap().get() == 200, "{:?}", found.tried());
    }

    proptest! {
        /// Whatever the capacity: the answer is within the resolution of it, and the promise of the number of runs is kept.
        #[test]
        fn the_boundary_is_found(capacity in 100_u64..10_000_000, from in 50_u64..200_000) {
            let strategy = bisect(from, 10_000_000);
            let (found, order) = search(strategy, |rate, _| rate.get() <= capacity);
            prop_assert!(order.len() as u64 <= strategy.most_runs());
            match found.boundary() {
                Boundary { sustained: Some(low), failed: Some(high) } => {
                    prop_assert!(low.get() <= capacity && high.get() > capacity);
                    prop_assert!(ratio(high, low) <= 1.0 + Strategy::RESOLUTION || high.get() - low.get() == 1);
                }
                Boundary { sustained: Some(low), failed: None } => prop_assert!(low.get() == 10_000_000),
                Boundary { sustained: None, .. } => prop_assert!(from > capacity),
            }
        }

        /// Every fourth run is stolen by something else: the answer stays.
        #[test]
        fn stolen_runs_move_nothing(capacity in 100_000_u64..5_000_000, phase in 0_u64..4) {
            let (clean, _) = search(bisect(50_000, 10_000_000), |rate, _| rate.get() <= capacity);
            let holds = |rate: Rate, run| rate.get() <= capacity && run % 4 != phase;
            let (stolen, _) = search(bisect(50_000, 10_000_000), holds);
            prop_assert_eq!(clean.boundary(), stolen.boundary());
        }
    }
}
