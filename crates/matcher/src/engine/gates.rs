//! Gates: one word about cells for a whole list, so that most events need not look into it.
//!
//! Where all entries of a list have a predicate on one view, the list's gate is the hull of what these predicates say: an event that
//! it is not true of matches none of them. It stands beside the key, where the first word of an only entry stands otherwise. New
//! entries widen it; now and then the best one is chosen anew, so that it follows what has become of the list.

use super::keys::ALWAYS;
use super::singles::WORDS;

/// The least word that is true wherever one of two is. None if they are about different views, or one goes around the end.
#[inline]
fn hull(a: u32, b: u32) -> Option<u32> {
    let first = |word: u32| word >> 8 & 255;
    let last = |word: u32| first(word) + (word & 255);
    let (start, end) = (first(a).min(first(b)), last(a).max(last(b)));
    (a >> 16 == b >> 16 && end <= 255).then(|| a >> 16 << 16 | start << 8 | (end - start))
}

/// A gate that an entry passes as well; none if the entry says nothing about the gate's view.
#[inline]
fn hull_with(gate: u32, words: &[u32; WORDS]) -> Option<u32> {
    words.iter().find_map(|&word| hull(gate, word))
}

/// The gate of a list with one entry more.
pub(super) fn widened(gate: u32, words: &[u32; WORDS]) -> u32 {
    hull_with(gate, words).unwrap_or(ALWAYS)
}

/// The best gate of some entries. Mostly the first few tell that there is none, if there is none.
pub(super) fn around(mut entries: impl Iterator<Item = [u32; WORDS]> + Clone) -> u32 {
    let Some(candidates) = entries.next() else { return ALWAYS };
    // Slot 0, which every event has, tells nothing.
    let candidates = candidates.into_iter().filter(|word| word >> 17 != 0);
    let gates = candidates.filter_map(|word| entries.clone().try_fold(word, |gate, words| hull_with(gate, &words)));
    gates.min_by_key(|&gate| weight(gate)).unwrap_or(ALWAYS)
}

/// How many events may pass, roughly. Cells are often those of operands, as no events were seen yet; then a range without an end above or
/// below is likely to begin where most events do not lie, and a band to lie where most do.
fn weight(gate: u32) -> u32 {
    let (first, span) = (gate >> 8 & 255, gate & 255);
    let is_open = first == 1 || first + span == 255;
    if is_open && span < 254 { span / 2 } else { span }
}

#[cfg(test)]
mod tests {
    use super::super::keys::{SURELY, passes};
    use super::*;

    #[test]
    fn a_gate_is_true_wherever_an_entry_is() {
        let mut random = 1_u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((random >> 33) % below) as u32
        };
        let mut useful = 0;
        for _ in 0..20_000 {
            // Ranges of few views, now and then one around the end.
            let mut entries = vec![[SURELY; WORDS]; 1 + next(5) as usize];
            for words in &mut entries {
                for (view, word) in (2..5).zip(&mut *words) {
                    *word = view << 16 | next(256) << 8 | next(60);
                }
                words[next(6) as usize] = [ALWAYS, SURELY, SURELY][next(3) as usize];
            }
            let chosen = around(entries.iter().copied());
            let grown = entries[1..].iter().fold(entries[0][0], widened);
            for _ in 0..20 {
                let mut cells = [1, 1, 0, 0, 0, 0, 0, 0];
                cells[2..5].fill_with(|| next(256) as u8);
                let is_wanted = entries.iter().any(|words| words.iter().all(|&word| passes(word, &cells)));
                assert!(!is_wanted || (passes(chosen, &cells) && passes(grown, &cells)), "{entries:x?} {cells:?}");
                useful += usize::from(!passes(chosen, &cells));
            }
        }
        assert!(useful > 20_000, "{useful}");
    }

    #[test]
    fn the_narrowest_view_that_all_entries_have_is_chosen() {
        let entry = |cells: [(u32, u32); 2]| {
            let [(a, b), (c, d)] = cells;
            [2 << 16 | a << 8 | b, 4 << 16 | c << 8 | d, SURELY, SURELY, SURELY, SURELY]
        };
        let mut entries = vec![entry([(10, 5), (200, 9)]), entry([(90, 5), (205, 9)])];
        assert_eq!(around(entries.iter().copied()), 4 << 16 | 200 << 8 | 14);
        entries.push([2 << 16 | 95 << 8 | 5, SURELY, SURELY, SURELY, SURELY, SURELY]);
        assert_eq!(around(entries.iter().copied()), 2 << 16 | 10 << 8 | 90);
        entries.push([ALWAYS; WORDS]);
        assert_eq!(around(entries.iter().copied()), ALWAYS);
    }
}
