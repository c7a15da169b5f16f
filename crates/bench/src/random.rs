//! Random numbers, the same everywhere: a generator, and samplers of the distributions that the workloads name.
//!
//! Logarithms and exponentials come from the `libm` crate, as those of the platform may differ in the last bit.

use std::f64::consts::TAU;

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator; the same seed and stream always give the same numbers, other streams others.
    pub fn new(seed: u64, stream: u64) -> Random {
        let mut random = Random { state: seed };
        random.state = random.next_u64() ^ stream.wrapping_mul(0xD605_1BD9_3A5E_5C6B);
        random
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// Uniform from 0 to `count` - 1. The bias, `count` / 2^64, is left.
    pub fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.next_u64()) * count as u128) >> 64) as usize
    }

    /// Uniform from `first` to `last`, both included.
    pub fn between(&mut self, first: usize, last: usize) -> usize {
        first + self.below(last - first + 1)
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// One of some things.
    pub fn pick<'a, T>(&mut self, things: &'a [T]) -> &'a T {
        &things[self.below(things.len())]
    }

    /// Standard normal (Box and Muller; the second value is not used).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(1.0 - self.unit())).sqrt();
        radius * libm::cos(TAU * self.unit())
    }

    /// `count` different numbers, drawn by `draw` and drawn again where one comes twice.
    pub fn distinct(&mut self, count: usize, mut draw: impl FnMut(&mut Random) -> usize) -> Vec<usize> {
        let mut drawn = Vec::with_capacity(count);
        while drawn.len() < count {
            let next = draw(self);
            if !drawn.contains(&next) {
                drawn.push(next);
            }
        }
        drawn
    }
}

/// Zipf's distribution with exponent 1: rank k (from 0) comes with a probability proportional to 1 / (k + 1).
#[derive(Clone, Debug)]
pub struct Zipf {
    /// By rank: the weights up to and with it.
    sums: Vec<f64>,
}

impl Zipf {
    /// Over so many ranks.
    pub fn new(ranks: usize) -> Zipf {
        let mut sum = 0.0;
        let weights = (1..=ranks).map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        });
        Zipf { sums: weights.collect() }
    }

    /// A rank; binary search.
    pub fn draw(&self, random: &mut Random) -> usize {
        let total = self.sums.last().expect("at least one rank");
        let point = random.unit() * total;
        self.sums.partition_point(|sum| *sum <= point).min(self.sums.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_pinned() {
        let mut random = Random::new(1, 0);
        assert_eq!([random.next_u64(), random.next_u64()], [6_791_897_765_849_424_158, 17_405_687_883_870_564_846]);
    }

    #[test]
    fn normal_has_the_mean_and_variance_of_its_name() {
        let mut random = Random::new(1, 0);
        let draws: Vec<f64> = (0..20_000).map(|_| random.normal()).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|draw| draw * draw).sum::<f64>() / draws.len() as f64;
        assert!(mean.abs() < 0.03, "{mean}");
        assert!((variance - 1.0).abs() < 0.05, "{variance}");
        let beyond_two = draws.iter().filter(|draw| draw.abs() > 2.0).count();
        assert!((800..1_020).contains(&beyond_two), "4.55 % of 20,000 expected, {beyond_two} found");
    }

    #[test]
    fn zipf_halves_from_the_first_rank_to_the_second() {
        let (zipf, mut random) = (Zipf::new(1_000), Random::new(1, 0));
        let mut counts = [0; 1_000];
        for _ in 0..100_000 {
            counts[zipf.draw(&mut random)] += 1;
        }
        // 1 / H(1000) = 0.1336.
        assert!((12_900..13_800).contains(&counts[0]), "{}", counts[0]);
        assert!((6_400..7_000).contains(&counts[1]), "{}", counts[1]);
        assert!(counts[500..].iter().sum::<i32>() > 8_000);
    }

    #[test]
    fn distinct_draws_are_distinct_and_complete() {
        let mut drawn = Random::new(1, 0).distinct(10, |random| random.below(10));
        drawn.sort_unstable();
        assert_eq!(drawn, (0..10).collect::<Vec<_>>());
    }
}
