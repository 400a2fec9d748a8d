//! How the hot loop parts with what it has recorded.

use tickpong_record::capture::Observation;

/// Takes closed intervals that hold anything, in order, and gives an empty buffer for each. The last one of the sending side comes whatever
/// it holds. Must neither wait nor allocate: it is called from the hot loop.
pub trait Exchange<T> {
    /// Takes the closed interval out of `buffer`, and leaves a buffer of the same kind there, whose content does not matter.
    ///
    /// In place, because the engine has nothing to put in the meantime where a closed interval was: any stand-in would be an allocation.
    fn exchange(&mut self, buffer: &mut Box<T>);

    /// All intervals below `index` are closed: those that were not handed over are empty. A silent stretch of a plan costs no buffers.
    fn pass(&mut self, index: u64);
}

/// Takes raw observations, where somebody wants them.
pub trait Observe {
    /// Takes one. Must neither wait nor allocate.
    fn observe(&mut self, observation: Observation);
}

/// Nobody wants raw observations: costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observe for Unobserved {
    #[inline]
    fn observe(&mut self, _: Observation) {}
}
