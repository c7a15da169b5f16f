//! The codes that cells start with, so that a code's place among them is found by looking at two cache lines.

use super::simd::{LINE, count_up_to};

/// The most codes: as many as the lines that one line can be about have.
const MOST: usize = LINE * LINE;

/// The codes in a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u32; LINE]);

/// Codes in ascending order.
#[derive(Clone, Debug, Default)]
pub(super) struct Bounds {
    count: usize,
    /// First the last code of each of the others, if there are several, then these. Behind the last code it is filled up with the greatest.
    lines: Box<[Line]>,
}

impl Line {
    /// How many of its codes are at most this one.
    #[inline]
    fn up_to(&self, code: u32) -> usize {
        count_up_to(&self.0, code)
    }
}

impl Bounds {
    /// Of codes that are in ascending order, 256 at most.
    pub(super) fn new(codes: &[u32]) -> Bounds {
        assert!(codes.len() <= MOST, "more codes than two lines can tell apart");
        let lines = codes.chunks(LINE).map(|codes| {
            let mut line = Line([u32::MAX; LINE]);
            line.0[..codes.len()].copy_from_slice(codes);
            line
        });
        let mut first = Line([u32::MAX; LINE]);
        first.0.iter_mut().zip(lines.clone()).for_each(|(last, line)| *last = line.0[LINE - 1]);
        let first = (codes.len() > LINE).then_some(first);
        Bounds { count: codes.len(), lines: first.into_iter().chain(lines).collect() }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// How many of the codes are at most this one.
    #[inline]
    pub(super) fn up_to(&self, code: u32) -> usize {
        let before = match &*self.lines {
            [] => 0,
            [only] => only.up_to(code),
            [first, lines @ ..] => {
                let line = first.up_to(code).min(lines.len() - 1);
                line * LINE + lines[line].up_to(code)
            }
        };
        before.min(self.count)
    }

    pub(super) fn get(&self, place: usize) -> Option<u32> {
        let line = place / LINE + usize::from(self.count > LINE);
        (place < self.count).then(|| self.lines[line].0[place % LINE])
    }

    /// Asks the processor for what finding a place begins with.
    #[inline]
    pub(super) fn prefetch(&self) {
        self.lines.first().into_iter().for_each(super::simd::prefetch);
    }

    pub(super) fn memory_usage(&self) -> usize {
        size_of_val(&*self.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_a_search() {
        for count in [0, 1, 2, 15, 16, 17, 31, 32, 33, 252, 255, 256] {
            let codes: Vec<u32> = (0..count).map(|number| 7 + 3 * number * number).collect();
            let greatest =
                codes.iter().copied().take(codes.len().saturating_sub(1)).chain((count > 0).then_some(u32::MAX));
            for codes in [codes.clone(), greatest.collect()] {
                let bounds = Bounds::new(&codes);
                assert_eq!(bounds.len(), codes.len());
                assert!((0..codes.len() + 20).all(|place| bounds.get(place) == codes.get(place).copied()));
                let around = codes.iter().flat_map(|&code| [code - 1, code, code.saturating_add(1)]);
                for code in around.chain([0, 1, u32::MAX - 1, u32::MAX]) {
                    let expected = codes.partition_point(|&bound| bound <= code);
                    assert_eq!(bounds.up_to(code), expected, "{code} in {codes:?}");
                }
            }
        }
    }
}
