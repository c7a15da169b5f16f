//! Loops that the compiler turns into vector code, once for each instruction set; the best one is chosen while the program runs.
//!
//! All variants are one source, so they give the same results. This is the only place with `unsafe`: a function compiled for
//! an instruction set may be called only where the processor has it, and each call stands behind the question whether it does.

#![allow(unsafe_code, reason = "calling a function compiled for an instruction set")]

/// Entries that are compared at once. Columns are padded to a multiple.
pub(super) const LANES: usize = 64;

/// What an event has for one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// The cell of the value: entries are first cell and span.
    Range(u8),
    /// The bit of the value's code in two bytes: entries are masks.
    Mask([u8; 2]),
}

/// For each of 64 entries two bits: whether it may match, and whether its ranges leave no doubt that it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) maybe: u64,
    pub(super) surely: u64,
}

/// Judges the 64 entries from `start` on. For each probe there are two columns of `stride` bytes.
#[inline]
pub(super) fn judge(probes: &[Probe], columns: &[u8], stride: usize, start: usize) -> Verdict {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl") {
            // SAFETY: the processor has the instructions, as was just asked.
            return unsafe { judge_avx512(probes, columns, stride, start) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { judge_avx2(probes, columns, stride, start) };
        }
    }
    judge_lanes(probes, columns, stride, start)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512bw,avx512vl")]
fn judge_avx512(probes: &[Probe], columns: &[u8], stride: usize, start: usize) -> Verdict {
    judge_lanes(probes, columns, stride, start)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn judge_avx2(probes: &[Probe], columns: &[u8], stride: usize, start: usize) -> Verdict {
    judge_lanes(probes, columns, stride, start)
}

/// The lanes of one column from `start` on.
#[inline(always)]
fn lanes(columns: &[u8], column: usize, stride: usize, start: usize) -> &[u8; LANES] {
    columns[column * stride + start..].first_chunk().expect("columns are padded")
}

#[inline(always)]
fn judge_lanes(probes: &[Probe], columns: &[u8], stride: usize, start: usize) -> Verdict {
    let mut maybe = [0xFF_u8; LANES];
    let mut surely = [0xFF_u8; LANES];
    for (number, probe) in probes.iter().enumerate() {
        let firsts = lanes(columns, 2 * number, stride, start);
        let seconds = lanes(columns, 2 * number + 1, stride, start);
        match *probe {
            Probe::Range(cell) => {
                for lane in 0..LANES {
                    let distance = cell.wrapping_sub(firsts[lane]);
                    maybe[lane] &= if distance <= seconds[lane] { 0xFF } else { 0 };
                    surely[lane] &= if distance < seconds[lane] { 0xFF } else { 0 };
                    surely[lane] &= if distance > 0 { 0xFF } else { 0 };
                }
            }
            Probe::Mask([low, high]) => {
                for lane in 0..LANES {
                    maybe[lane] &= if (firsts[lane] & low) | (seconds[lane] & high) != 0 { 0xFF } else { 0 };
                }
            }
        }
    }
    let maybe = bits(&maybe);
    Verdict { maybe, surely: maybe & bits(&surely) }
}

/// One bit of each lane, which is all ones or all zeros.
#[inline(always)]
fn bits(lanes: &[u8; LANES]) -> u64 {
    let mut bits = 0;
    for (place, eight) in lanes.as_chunks::<8>().0.iter().enumerate() {
        // Multiplying moves bit 0 of byte k to bit 56 + k, with nothing carried in between.
        let eight = (u64::from_le_bytes(*eight) & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        bits |= eight << (8 * place);
    }
    bits
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

/// Words of a bitmap that are united at once; bitmaps are padded to a multiple.
pub(super) const STRIP: usize = 32;

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
    for (number, into) in into.as_chunks_mut::<STRIP>().0.iter_mut().enumerate() {
        let mut union = [0; STRIP];
        for bitmap in bitmaps {
            let strip: &[u64; STRIP] = bitmap[number * STRIP..].first_chunk().expect("bitmaps are padded");
            for (word, from) in union.iter_mut().zip(strip) {
                *word |= from;
            }
        }
        *into = union;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the definition has it, one entry after the other.
    fn plainly(probes: &[Probe], columns: &[u8], stride: usize, start: usize) -> Verdict {
        let mut verdict = Verdict::default();
        for lane in 0..LANES {
            let at = |column: usize| columns[column * stride + start + lane];
            let (mut maybe, mut surely) = (true, true);
            for (number, probe) in probes.iter().enumerate() {
                let (first, second) = (at(2 * number), at(2 * number + 1));
                match *probe {
                    Probe::Range(cell) => {
                        maybe &= cell.wrapping_sub(first) <= second;
                        surely &= (1..second).contains(&cell.wrapping_sub(first));
                    }
                    Probe::Mask([low, high]) => maybe &= first & low != 0 || second & high != 0,
                }
            }
            verdict.maybe |= u64::from(maybe) << lane;
            verdict.surely |= u64::from(maybe && surely) << lane;
        }
        verdict
    }

    #[test]
    fn all_variants_of_the_processor_agree() {
        let mut random = 1_u64;
        let mut byte = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 56) as u8
        };
        let stride = 3 * LANES;
        for round in 0..2_000 {
            let probes: Vec<Probe> = (0..round % 4)
                .map(|_| if byte() < 170 { Probe::Range(byte()) } else { Probe::Mask([1 << (byte() & 7), 0]) })
                .collect();
            let columns: Vec<u8> = (0..8 * stride).map(|_| byte() | byte()).collect();
            let expected = plainly(&probes, &columns, stride, LANES);
            assert_eq!(judge_lanes(&probes, &columns, stride, LANES), expected);
            assert_eq!(judge(&probes, &columns, stride, LANES), expected);
            #[cfg(target_arch = "x86_64")]
            {
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has the instructions, as was just asked.
                    assert_eq!(unsafe { judge_avx2(&probes, &columns, stride, LANES) }, expected);
                }
                if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl") {
                    // SAFETY: as above.
                    assert_eq!(unsafe { judge_avx512(&probes, &columns, stride, LANES) }, expected);
                }
            }
        }
    }

    #[test]
    fn all_variants_unite_alike() {
        let bitmaps: Vec<Vec<u64>> = (0..5_u64)
            .map(|bitmap| {
                (0..64).map(|word| (word * 5 + bitmap).wrapping_mul(0x9E37_79B9_7F4A_7C15) & 1 << word).collect()
            })
            .collect();
        for count in 0..=5 {
            let bitmaps: Vec<&[u64]> = bitmaps[..count].iter().map(|bitmap| &bitmap[..]).collect();
            let plainly: Vec<u64> =
                (0..64).map(|word| bitmaps.iter().fold(0, |union, bitmap| union | bitmap[word])).collect();
            let check = |unite: &dyn Fn(&mut [u64])| {
                let mut union = vec![7; 64];
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
