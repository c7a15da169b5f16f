//! A sorted list that is read by long runs and changed one entry at a time.

/// Entries (code, number), ascending, in blocks: inserting and removing cost one block's length and the logarithm of
/// their number.
#[derive(Clone, Debug, Default)]
pub(crate) struct SortedList {
    /// The last entry of each block.
    lasts: Vec<(u64, u32)>,
    blocks: Vec<Block>,
    len: usize,
}

#[derive(Clone, Debug, Default)]
struct Block {
    codes: Vec<u64>,
    numbers: Vec<u32>,
}

/// Longer blocks are halved.
const BLOCK: usize = 512;

impl SortedList {
    pub(crate) fn insert(&mut self, code: u64, number: u32) {
        if self.blocks.is_empty() {
            self.blocks.push(Block::default());
            self.lasts.push((code, number));
        }
        let entry = (code, number);
        let index = self.lasts.partition_point(|&last| last < entry).min(self.blocks.len() - 1);
        let block = &mut self.blocks[index];
        let place = block.place(entry);
        block.codes.insert(place, code);
        block.numbers.insert(place, number);
        self.len += 1;
        self.lasts[index] = self.lasts[index].max(entry);
        if block.codes.len() > BLOCK {
            let half = BLOCK / 2;
            let upper = Block { codes: block.codes.split_off(half), numbers: block.numbers.split_off(half) };
            self.lasts.insert(index, (block.codes[half - 1], block.numbers[half - 1]));
            self.blocks.insert(index + 1, upper);
        }
    }

    /// Removes an entry that is there.
    pub(crate) fn remove(&mut self, code: u64, number: u32) {
        let entry = (code, number);
        let index = self.lasts.partition_point(|&last| last < entry);
        let block = &mut self.blocks[index];
        let place = block.place(entry);
        debug_assert_eq!((block.codes[place], block.numbers[place]), entry);
        block.codes.remove(place);
        block.numbers.remove(place);
        self.len -= 1;
        match block.codes.last().zip(block.numbers.last()) {
            Some((&code, &number)) => self.lasts[index] = (code, number),
            None => {
                self.blocks.remove(index);
                self.lasts.remove(index);
            }
        }
    }

    /// The numbers of all entries with at least this code, in runs.
    pub(crate) fn at_least(&self, code: u64) -> impl Iterator<Item = &[u32]> {
        let (index, place) = self.first_at_least(code);
        let (partial, whole) = self.blocks[index..].split_at(usize::from(index < self.blocks.len()));
        partial.iter().map(move |block| &block.numbers[place..]).chain(whole.iter().map(|block| &block.numbers[..]))
    }

    /// The numbers of all entries with a smaller code, in runs.
    pub(crate) fn below(&self, code: u64) -> impl Iterator<Item = &[u32]> {
        let (index, place) = self.first_at_least(code);
        let whole = self.blocks[..index].iter().map(|block| &block.numbers[..]);
        whole.chain(self.blocks.get(index).map(|block| &block.numbers[..place]))
    }

    /// The numbers of all entries with this code, in runs.
    pub(crate) fn equal(&self, code: u64) -> impl Iterator<Item = &[u32]> {
        let (index, mut from) = self.first_at_least(code);
        self.blocks[index..].iter().map_while(move |block| {
            let to = from + block.codes[from..].partition_point(|&other| other == code);
            let run = &block.numbers[std::mem::take(&mut from)..to];
            (!run.is_empty()).then_some(run)
        })
    }

    /// The numbers of all entries, in runs.
    pub(crate) fn all(&self) -> impl Iterator<Item = &[u32]> {
        self.blocks.iter().map(|block| &block.numbers[..])
    }

    /// Block and place of the first entry with at least this code.
    fn first_at_least(&self, code: u64) -> (usize, usize) {
        let index = self.lasts.partition_point(|&(last, _)| last < code);
        let place = self.blocks.get(index).map_or(0, |block| block.codes.partition_point(|&other| other < code));
        (index, place)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn memory_usage(&self) -> usize {
        let block = |block: &Block| {
            block.codes.capacity() * size_of::<u64>() + block.numbers.capacity() * size_of::<u32>() + size_of::<Block>()
        };
        self.blocks.iter().map(block).sum::<usize>() + self.lasts.capacity() * size_of::<(u64, u32)>()
    }
}

impl Block {
    fn place(&self, (code, number): (u64, u32)) -> usize {
        let from = self.codes.partition_point(|&other| other < code);
        let same = self.codes[from..].partition_point(|&other| other == code);
        from + self.numbers[from..from + same].partition_point(|&other| other < number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn it_is_a_sorted_set() {
        let (mut list, mut set) = (SortedList::default(), BTreeSet::new());
        let mut random = 1_u64;
        for step in 0..20_000_u32 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let entry = (random >> 57, (random >> 40) as u32 % 50);
            // Grows for a while, then shrinks to little.
            if set.contains(&entry) && (step > 10_000 || step % 2 == 0) {
                set.remove(&entry);
                list.remove(entry.0, entry.1);
            } else if step < 10_000 && set.insert(entry) {
                list.insert(entry.0, entry.1);
            }
            if step % 97 == 0 {
                check(&list, &set, random >> 57);
            }
        }
        for entry in std::mem::take(&mut set) {
            list.remove(entry.0, entry.1);
        }
        assert!(list.is_empty() && list.blocks.is_empty());
        check(&list, &set, 5);
    }

    fn check(list: &SortedList, set: &BTreeSet<(u64, u32)>, code: u64) {
        let which = |wanted: &dyn Fn(u64) -> bool| -> Vec<u32> {
            set.iter().filter(|&&(code, _)| wanted(code)).map(|&(_, number)| number).collect()
        };
        let flat = |runs: Vec<&[u32]>| runs.concat();
        assert_eq!(flat(list.at_least(code).collect()), which(&|other| other >= code));
        assert_eq!(flat(list.below(code).collect()), which(&|other| other < code));
        assert_eq!(flat(list.equal(code).collect()), which(&|other| other == code));
        assert_eq!(flat(list.all().collect()), which(&|_| true));
    }
}
