//! Sorting ids. Where many subscriptions match, comparing them would cost more than finding them.

use crate::SubscriptionId;

/// Fewer are sorted by comparing.
const FEW: usize = 192;
const BITS: u32 = 11;

/// Sorts ids, with another buffer to work in: by digits from the lowest on, as far as the ids differ.
pub(super) fn sort(ids: &mut Vec<SubscriptionId>, buffer: &mut Vec<SubscriptionId>) {
    if ids.len() < FEW {
        return ids.sort_unstable();
    }
    let differing = ids.iter().fold(0, |bits, id| bits | id.0 ^ ids[0].0);
    let digits = (64 - differing.leading_zeros()).div_ceil(BITS);
    // Each digit costs two walks over the ids and one over the counts.
    if digits > 3 && ids.len() < 4096 {
        return ids.sort_unstable();
    }
    buffer.clear();
    buffer.resize(ids.len(), SubscriptionId(0));
    for digit in 0..digits {
        let digit_of = |id: &SubscriptionId| (id.0 >> (digit * BITS)) as usize & ((1 << BITS) - 1);
        let mut starts = [0_u32; 1 << BITS];
        ids.iter().for_each(|id| starts[digit_of(id)] += 1);
        let mut sum = 0;
        for start in &mut starts {
            sum += std::mem::replace(start, sum);
        }
        for id in &*ids {
            let start = &mut starts[digit_of(id)];
            buffer[*start as usize] = *id;
            *start += 1;
        }
        std::mem::swap(ids, buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_few_and_many_small_and_large() {
        for (count, factor) in [(0, 1), (10, 77), (500, 12_345), (5_000, 99), (5_000, 0x1234_5678_9ABC_DEF1_u64)] {
            let mut ids: Vec<SubscriptionId> =
                (0..count).map(|number: u64| SubscriptionId((number * 7_919 % 5_003).wrapping_mul(factor))).collect();
            let mut expected = ids.clone();
            expected.sort_unstable();
            sort(&mut ids, &mut vec![SubscriptionId(3); 7]);
            assert_eq!(ids, expected);
        }
    }
}
