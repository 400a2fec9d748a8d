//! An order by chance that a seed repeats.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tickpong_units::Seed;

/// Puts the items into an order by chance (Fisher and Yates), the same for the same seed everywhere.
pub(super) fn shuffle<T>(items: &mut [T], seed: Seed) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed.get());
    for last in (1..items.len()).rev() {
        items.swap(last, below(&mut random, last + 1));
    }
}

/// A number below `bound`, each as likely: what would favour the small ones is drawn again.
fn below(random: &mut Xoshiro256PlusPlus, bound: usize) -> usize {
    let bound = bound as u64;
    let fair = u64::MAX - u64::MAX % bound;
    loop {
        let drawn = random.next_u64();
        if drawn < fair {
            return usize::try_from(drawn % bound).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(seed: u64) -> Vec<u32> {
        let mut items: Vec<u32> = (0..6).collect();
        shuffle(&mut items, Seed::new(seed));
        items
    }

    #[test]
    fn an_order_is_its_seeds() {
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        insta::assert_debug_snapshot!(order(1));
    }

    #[test]
    fn every_item_comes_first_as_often() {
        let mut first = [0_u32; 6];
        for seed in 0..6_000 {
            first[order(seed)[0] as usize] += 1;
        }
        assert!(first.iter().all(|count| (880..1_120).contains(count)), "{first:?}");
    }
}
