//! Chance that can be had again.

/// A small generator of random numbers (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, count: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (bits ^ (bits >> 31)) % count
    }

    pub(crate) fn float(&mut self, most: u64) -> f64 {
        self.below(most * 100) as f64 / 100.0
    }

    pub(crate) fn pick<'a, T>(&mut self, things: &'a [T]) -> &'a T {
        &things[self.below(things.len() as u64) as usize]
    }
}

/// The seed of a test with random input: another one if the environment says so.
///
/// Whoever uses it names it where an assertion fails.
pub(crate) fn seed(default: u64) -> u64 {
    match std::env::var("ENROUTE_TEST_SEED") {
        Ok(text) => text.parse().unwrap_or_else(|error| panic!("ENROUTE_TEST_SEED={text}: {error}")),
        Err(_) => default,
    }
}
