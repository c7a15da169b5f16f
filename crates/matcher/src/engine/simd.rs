//! Loops that the compiler turns into vector code, once for each instruction set; the best one is chosen while the program runs.
//!
//! Most variants are one source. For AVX-512 three are written out; tests hold each variant against a plain one. This is the only
//! place with `unsafe`: a function compiled for an instruction set may be called only where the processor has it, and each call
//! stands behind the question whether it does; inside of some, vectors are loaded from memory and stored there.

#![allow(unsafe_code, reason = "functions compiled for an instruction set, and their loads and stores")]

use super::keys::passes;
use crate::SubscriptionId;

/// Entries that are compared at once. Columns are padded to a multiple.
pub(super) const LANES: usize = 32;

/// What an event has for one column or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    /// The (first) column.
    pub(super) column: u16,
    pub(super) test: Test,
}

/// How the entries of a column are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test {
    /// This position is at least that in the column.
    AtLeast(u16),
    /// This position is at most that in the column.
    AtMost(u16),
    /// This position lies in the range of first position and span, which stand in two columns.
    Range(u16),
    /// One of these bits is in the mask that stands in one column.
    Mask(u16),
}

/// For each of some entries two bits: whether it may match, and whether its ranges leave no doubt that it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) maybe: u32,
    pub(super) surely: u32,
}

/// Judges entries, [`LANES`] for each verdict, by columns of `stride` words.
#[inline]
pub(super) fn judge(probes: &[Probe], columns: &[u16], stride: usize, verdicts: &mut [Verdict]) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512bw") {
            // SAFETY: the processor has the instructions, as was just asked.
            return unsafe { judge_avx512(probes, columns, stride, verdicts) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { judge_avx2(probes, columns, stride, verdicts) };
        }
    }
    judge_lanes(probes, columns, stride, verdicts);
}

/// As [`judge_lanes`], with what the compiler does not find by itself: that comparisons give bits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512bw")]
fn judge_avx512(probes: &[Probe], columns: &[u16], stride: usize, verdicts: &mut [Verdict]) {
    use std::arch::x86_64::*;
    for (block, verdict) in verdicts.iter_mut().enumerate() {
        let (mut maybe, mut surely) = (u32::MAX, u32::MAX);
        for probe in probes {
            let load = |column: u16| {
                let lanes = lanes(columns, column, stride, block);
                // SAFETY: the lanes are as many bytes as are loaded, wherever they lie.
                unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) }
            };
            match probe.test {
                Test::AtLeast(position) => {
                    let (position, least) = (_mm512_set1_epi16(position as i16), load(probe.column));
                    maybe &= _mm512_cmpge_epu16_mask(position, least);
                    surely &= _mm512_cmpgt_epu16_mask(position, least);
                }
                Test::AtMost(position) => {
                    let (position, most) = (_mm512_set1_epi16(position as i16), load(probe.column));
                    maybe &= _mm512_cmple_epu16_mask(position, most);
                    surely &= _mm512_cmplt_epu16_mask(position, most);
                }
                Test::Range(position) => {
                    let distance = _mm512_sub_epi16(_mm512_set1_epi16(position as i16), load(probe.column));
                    let span = load(probe.column + 1);
                    maybe &= _mm512_cmple_epu16_mask(distance, span);
                    surely &= _mm512_cmplt_epu16_mask(distance, span) & _mm512_test_epi16_mask(distance, distance);
                }
                Test::Mask(bits) => {
                    maybe &= _mm512_test_epi16_mask(load(probe.column), _mm512_set1_epi16(bits as i16));
                }
            }
        }
        *verdict = Verdict { maybe, surely: maybe & surely };
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn judge_avx2(probes: &[Probe], columns: &[u16], stride: usize, verdicts: &mut [Verdict]) {
    judge_lanes(probes, columns, stride, verdicts);
}

/// The lanes of one column in one block of them.
#[inline(always)]
fn lanes(columns: &[u16], column: u16, stride: usize, block: usize) -> &[u16; LANES] {
    columns[usize::from(column) * stride + block * LANES..].first_chunk().expect("columns are padded")
}

#[inline(always)]
fn judge_lanes(probes: &[Probe], columns: &[u16], stride: usize, verdicts: &mut [Verdict]) {
    for (block, verdict) in verdicts.iter_mut().enumerate() {
        let mut maybe = [u16::MAX; LANES];
        let mut surely = [u16::MAX; LANES];
        for probe in probes {
            let firsts = lanes(columns, probe.column, stride, block);
            match probe.test {
                Test::AtLeast(position) => {
                    for lane in 0..LANES {
                        maybe[lane] &= if position >= firsts[lane] { u16::MAX } else { 0 };
                        surely[lane] &= if position > firsts[lane] { u16::MAX } else { 0 };
                    }
                }
                Test::AtMost(position) => {
                    for lane in 0..LANES {
                        maybe[lane] &= if position <= firsts[lane] { u16::MAX } else { 0 };
                        surely[lane] &= if position < firsts[lane] { u16::MAX } else { 0 };
                    }
                }
                Test::Range(position) => {
                    let spans = lanes(columns, probe.column + 1, stride, block);
                    for lane in 0..LANES {
                        let distance = position.wrapping_sub(firsts[lane]);
                        maybe[lane] &= if distance <= spans[lane] { u16::MAX } else { 0 };
                        surely[lane] &= if distance < spans[lane] { u16::MAX } else { 0 };
                        surely[lane] &= if distance > 0 { u16::MAX } else { 0 };
                    }
                }
                Test::Mask(bits) => {
                    for lane in 0..LANES {
                        maybe[lane] &= if firsts[lane] & bits != 0 { u16::MAX } else { 0 };
                    }
                }
            }
        }
        let maybe = bits(&maybe);
        *verdict = Verdict { maybe, surely: maybe & bits(&surely) };
    }
}

/// One bit of each lane, which is all ones or all zeros.
#[inline(always)]
fn bits(lanes: &[u16; LANES]) -> u32 {
    let bytes = lanes.map(|lane| lane as u8);
    let mut bits = 0;
    for (place, eight) in bytes.as_chunks::<8>().0.iter().enumerate() {
        // Multiplying moves bit 0 of byte k to bit 56 + k, with nothing carried in between.
        let eight = (u64::from_le_bytes(*eight) & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        bits |= (eight as u32) << (8 * place);
    }
    bits
}

/// Appends those of the ids whose bits are set, [`LANES`] in each word.
#[inline]
pub(super) fn choose(ids: &[SubscriptionId], chosen: &[u32], into: &mut Vec<SubscriptionId>) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("popcnt") {
        // SAFETY: the processor has the instructions, as was just asked.
        return unsafe { choose_avx512(ids, chosen, into) };
    }
    choose_each(ids, chosen, into);
}

/// As [`choose_each`], eight at a time without a branch.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,popcnt")]
fn choose_avx512(ids: &[SubscriptionId], chosen: &[u32], into: &mut Vec<SubscriptionId>) {
    use std::arch::x86_64::*;
    const EIGHT: usize = 8;
    let count: usize = chosen.iter().map(|bits| bits.count_ones() as usize).sum();
    into.reserve(count + EIGHT);
    let mut length = into.len();
    for (ids, bits) in ids.as_chunks::<LANES>().0.iter().zip(chosen).filter(|(_, bits)| **bits != 0) {
        for (part, ids) in ids.as_chunks::<EIGHT>().0.iter().enumerate() {
            let bits = (bits >> (EIGHT * part)) as u8;
            // SAFETY: eight ids are read, each of which is a u64. Eight are written from `length` on, which is at most `count`
            // more than it was: there is room for so many and eight.
            unsafe {
                let ids = _mm512_loadu_si512(ids.as_ptr().cast());
                let ids = _mm512_maskz_compress_epi64(bits, ids);
                _mm512_storeu_si512(into.as_mut_ptr().add(length).cast(), ids);
            }
            length += bits.count_ones() as usize;
        }
    }
    // SAFETY: all up to there was written, and there is room for it, as said above.
    unsafe { into.set_len(length) };
}

fn choose_each(ids: &[SubscriptionId], chosen: &[u32], into: &mut Vec<SubscriptionId>) {
    for (ids, bits) in ids.as_chunks::<LANES>().0.iter().zip(chosen) {
        into.extend(ones(*bits).map(|lane| ids[lane]));
    }
}

/// Appends the places of those words that are true of an event with these cells: see [`passes`].
///
/// # Panics
/// A word is about a view that has no cell, or, as cells are followed by three more, perhaps about one of those.
#[inline]
pub(super) fn find_passing(words: &[u32], cells: &[u8], into: &mut Vec<u32>) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("popcnt") {
        // SAFETY: the processor has the instructions, as was just asked.
        return unsafe { find_passing_avx512(words, cells, into) };
    }
    find_passing_each(words, cells, into);
}

/// As [`find_passing_each`], sixteen at a time without a branch.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,popcnt")]
fn find_passing_avx512(words: &[u32], cells: &[u8], into: &mut Vec<u32>) {
    use std::arch::x86_64::*;
    const WORDS: usize = 16;
    // What is gathered are four bytes from a cell on, of which the first is meant.
    let bound = cells.len().saturating_sub(3);
    into.reserve(words.len() + WORDS);
    let mut length = into.len();
    let low_byte = _mm512_set1_epi32(0xFF);
    let (mut places, step) =
        (_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), _mm512_set1_epi32(WORDS as i32));
    for part in words.chunks(WORDS) {
        let lanes = u16::MAX >> (WORDS - part.len());
        // SAFETY: only the words of the part are read. Only lanes whose views are less than `bound` are gathered, from where on the
        // cells have four bytes. Sixteen places are written from `length` on, which has grown by at most as many as there were words
        // before: there is room for all words and sixteen.
        let passing = unsafe {
            let words = _mm512_maskz_loadu_epi32(lanes, part.as_ptr().cast());
            let views = _mm512_srli_epi32::<16>(words);
            let known = _mm512_cmplt_epu32_mask(views, _mm512_set1_epi32(bound as i32));
            assert!(known & lanes == lanes, "every word is about a view that has a cell");
            let cells = _mm512_mask_i32gather_epi32::<1>(_mm512_setzero_si512(), lanes, views, cells.as_ptr().cast());
            let distance = _mm512_and_si512(_mm512_sub_epi32(cells, _mm512_srli_epi32::<8>(words)), low_byte);
            let passing = _mm512_mask_cmple_epu32_mask(lanes, distance, _mm512_and_si512(words, low_byte));
            let passing_places = _mm512_maskz_compress_epi32(passing, places);
            _mm512_storeu_si512(into.as_mut_ptr().add(length).cast(), passing_places);
            passing
        };
        length += passing.count_ones() as usize;
        places = _mm512_add_epi32(places, step);
    }
    // SAFETY: all up to there was written, and there is room for it, as said above.
    unsafe { into.set_len(length) };
}

fn find_passing_each(words: &[u32], cells: &[u8], into: &mut Vec<u32>) {
    let (start, mut count) = (into.len(), 0);
    into.resize(start + words.len(), 0);
    for (place, &word) in words.iter().enumerate() {
        // Without a branch, as nobody could predict it.
        into[start + count] = place as u32;
        count += usize::from(passes(word, cells));
    }
    into.truncate(start + count);
}

/// Numbers that are compared at once with one.
pub(super) const LINE: usize = 16;

/// How many numbers of a line are at most this one.
#[inline]
pub(super) fn count_up_to(line: &[u32; LINE], number: u32) -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("popcnt") {
        // SAFETY: the processor has the instructions, as was just asked.
        return unsafe { count_up_to_avx512(line, number) };
    }
    count_up_to_each(line, number)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,popcnt")]
fn count_up_to_avx512(line: &[u32; LINE], number: u32) -> usize {
    use std::arch::x86_64::*;
    // SAFETY: the line is as many bytes as are loaded.
    let line = unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
    _mm512_cmple_epu32_mask(line, _mm512_set1_epi32(number as i32)).count_ones() as usize
}

#[inline]
fn count_up_to_each(line: &[u32; LINE], number: u32) -> usize {
    // Counted in 32 bits, so that the compiler makes vector code of it.
    line.iter().map(|&other| u32::from(other <= number)).sum::<u32>() as usize
}

/// The places of the ones.
#[inline]
pub(super) fn ones(mut bits: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if bits == 0 {
            return None;
        }
        let place = bits.trailing_zeros() as usize;
        bits &= bits - 1;
        Some(place)
    })
}

/// Asks the processor to have a place of memory at hand soon.
#[inline]
pub(super) fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: it changes nothing that a program can see, wherever the pointer leads.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Bitmaps are padded to a multiple of so many words, a cache line.
pub(super) const STRIP: usize = 8;
/// Words that are united at once where there are so many.
const WIDE_STRIP: usize = 32;

/// The union of some bitmaps, as far as `into` goes.
#[inline]
pub(super) fn unite(into: &mut [u64], bitmaps: &[&[u64]]) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has the instructions, as was just asked.
            return unsafe { unite_avx512(into, bitmaps) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { unite_avx2(into, bitmaps) };
        }
    }
    unite_strips(into, bitmaps);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn unite_avx512(into: &mut [u64], bitmaps: &[&[u64]]) {
    unite_strips(into, bitmaps);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn unite_avx2(into: &mut [u64], bitmaps: &[&[u64]]) {
    unite_strips(into, bitmaps);
}

#[inline(always)]
fn unite_strips(into: &mut [u64], bitmaps: &[&[u64]]) {
    let (wide, rest) = into.as_chunks_mut::<WIDE_STRIP>();
    let start = wide.len() * WIDE_STRIP;
    for (number, strip) in wide.iter_mut().enumerate() {
        unite_strip(strip, bitmaps, number * WIDE_STRIP);
    }
    for (number, strip) in rest.as_chunks_mut::<STRIP>().0.iter_mut().enumerate() {
        unite_strip(strip, bitmaps, start + number * STRIP);
    }
}

#[inline(always)]
fn unite_strip<const WORDS: usize>(into: &mut [u64; WORDS], bitmaps: &[&[u64]], start: usize) {
    let mut union = [0; WORDS];
    for bitmap in bitmaps {
        let strip: &[u64; WORDS] = bitmap[start..].first_chunk().expect("bitmaps are padded");
        for (word, from) in union.iter_mut().zip(strip) {
            *word |= from;
        }
    }
    *into = union;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the definition has it, one entry after the other.
    fn plainly(probes: &[Probe], columns: &[u16], stride: usize, verdicts: &mut [Verdict]) {
        verdicts.fill(Verdict::default());
        for entry in 0..verdicts.len() * LANES {
            let at = |column: u16| columns[usize::from(column) * stride + entry];
            let (mut maybe, mut surely) = (true, true);
            for probe in probes {
                match probe.test {
                    Test::AtLeast(position) => {
                        maybe &= position >= at(probe.column);
                        surely &= position > at(probe.column);
                    }
                    Test::AtMost(position) => {
                        maybe &= position <= at(probe.column);
                        surely &= position < at(probe.column);
                    }
                    Test::Range(position) => {
                        let (first, span) = (at(probe.column), at(probe.column + 1));
                        maybe &= position.wrapping_sub(first) <= span;
                        surely &= (1..span).contains(&position.wrapping_sub(first));
                    }
                    Test::Mask(bits) => maybe &= at(probe.column) & bits != 0,
                }
            }
            verdicts[entry / LANES].maybe |= u32::from(maybe) << (entry % LANES);
            verdicts[entry / LANES].surely |= u32::from(maybe && surely) << (entry % LANES);
        }
    }

    #[test]
    fn all_variants_of_the_processor_agree() {
        let mut random = 1_u64;
        let mut word = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 48) as u16
        };
        let stride = 3 * LANES;
        for round in 0..2_000 {
            // Few different positions, so that some stand at the ends of ranges.
            let mut position = || word() & 0x8003;
            let columns: Vec<u16> = (0..8 * stride).map(|_| position() | position()).collect();
            let probes: Vec<Probe> = (0..round % 4)
                .map(|number| {
                    let position = word() & 0x8003;
                    let test = match word() >> 14 {
                        0 => Test::AtLeast(position),
                        1 => Test::AtMost(position),
                        2 => Test::Range(position),
                        _ => Test::Mask(1 << (position & 1)),
                    };
                    Probe { column: 2 * number, test }
                })
                .collect();
            let (mut expected, mut verdicts) = ([Verdict::default(); 2], [Verdict::default(); 2]);
            plainly(&probes, &columns, stride, &mut expected);
            let mut check = |judge: &dyn Fn(&mut [Verdict])| {
                judge(&mut verdicts);
                assert_eq!(verdicts, expected, "{probes:?}");
            };
            check(&|verdicts| judge_lanes(&probes, &columns, stride, verdicts));
            check(&|verdicts| judge(&probes, &columns, stride, verdicts));
            #[cfg(target_arch = "x86_64")]
            {
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has the instructions, as was just asked.
                    check(&|verdicts| unsafe { judge_avx2(&probes, &columns, stride, verdicts) });
                }
                if is_x86_feature_detected!("avx512bw") {
                    // SAFETY: as above.
                    check(&|verdicts| unsafe { judge_avx512(&probes, &columns, stride, verdicts) });
                }
            }
        }
    }

    #[test]
    fn all_variants_choose_alike() {
        let ids: Vec<SubscriptionId> = (100..100 + 4 * LANES as u64).map(SubscriptionId).collect();
        for chosen in [[0, 0, 0, 0], [1, 0x8000_0000, 0, u32::MAX], [0xF0F0_1234, 0x00FF_0000, 0x0101_0101, 7]] {
            let plainly = ids.iter().enumerate().filter(|(place, _)| chosen[place / LANES] >> (place % LANES) & 1 == 1);
            let expected: Vec<SubscriptionId> =
                std::iter::once(SubscriptionId(5)).chain(plainly.map(|(_, id)| *id)).collect();
            for choose in [choose, choose_each] {
                let mut into = vec![SubscriptionId(5)];
                choose(&ids, &chosen, &mut into);
                assert_eq!(into, expected);
            }
        }
    }

    #[test]
    fn all_variants_find_the_same_words() {
        let mut random = 1_u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((random >> 32) % below) as u32
        };
        let cells: Vec<u8> = (0..40).map(|_| next(4) as u8 * 85).collect();
        for length in 0..200 {
            // The last three cells are there for what reads four at once.
            let words: Vec<u32> = (0..length).map(|_| next(37) << 16 | (next(4) * 85) << 8 | next(256)).collect();
            let plainly = words.iter().zip(0..).filter(|(word, _)| passes(**word, &cells)).map(|(_, place)| place);
            let expected: Vec<u32> = std::iter::once(7).chain(plainly).collect();
            for find in [find_passing, find_passing_each] {
                let mut into = vec![7];
                find(&words, &cells, &mut into);
                assert_eq!(into, expected);
            }
        }
    }

    #[test]
    fn all_variants_count_alike() {
        let line: [u32; LINE] = std::array::from_fn(|place| [0, 5, 1 << 31, u32::MAX][place / 4]);
        for (number, count) in [(0, 4), (4, 4), (5, 8), (1 << 31, 12), (u32::MAX - 1, 12), (u32::MAX, 16)] {
            assert_eq!((count_up_to(&line, number), count_up_to_each(&line, number)), (count, count), "{number}");
        }
    }

    #[test]
    #[should_panic]
    fn a_word_about_no_cell_is_refused() {
        let cells = [0; 40];
        find_passing(&[(cells.len() as u32) << 16], &cells, &mut Vec::new());
    }

    #[test]
    fn all_variants_unite_alike() {
        let bitmaps: Vec<Vec<u64>> = (0..5_u64)
            .map(|bitmap| {
                (0..72).map(|word| (word * 5 + bitmap).wrapping_mul(0x9E37_79B9_7F4A_7C15) & 1 << (word % 64)).collect()
            })
            .collect();
        for count in 0..=5 {
            let bitmaps: Vec<&[u64]> = bitmaps[..count].iter().map(|bitmap| &bitmap[..]).collect();
            let plainly: Vec<u64> =
                (0..72).map(|word| bitmaps.iter().fold(0, |union, bitmap| union | bitmap[word])).collect();
            let check = |unite: &dyn Fn(&mut [u64])| {
                let mut union = vec![7; 72];
                unite(&mut union);
                assert_eq!(union, plainly);
            };
            check(&|into| unite(into, &bitmaps));
            check(&|into| unite_strips(into, &bitmaps));
            #[cfg(target_arch = "x86_64")]
            {
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has the instructions, as was just asked.
                    check(&|into| unsafe { unite_avx2(into, &bitmaps) });
                }
                if is_x86_feature_detected!("avx512f") {
                    // SAFETY: as above.
                    check(&|into| unsafe { unite_avx512(into, &bitmaps) });
                }
            }
        }
    }
}
