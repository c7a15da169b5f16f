//! Lists of numbers that are short almost always.

/// A list of numbers, in place while there are few.
#[derive(Clone, Debug)]
pub(crate) enum SmallList {
    Few { len: u8, numbers: [u32; FEW] },
    Many(Vec<u32>),
}

/// As many as leave it as small as a `Vec`.
const FEW: usize = 3;

impl Default for SmallList {
    fn default() -> Self {
        SmallList::Few { len: 0, numbers: [0; FEW] }
    }
}

impl SmallList {
    pub(crate) fn as_slice(&self) -> &[u32] {
        match self {
            SmallList::Few { len, numbers } => &numbers[..usize::from(*len)],
            SmallList::Many(numbers) => numbers,
        }
    }

    pub(crate) fn push(&mut self, number: u32) {
        match self {
            SmallList::Few { len, numbers } if usize::from(*len) < FEW => {
                numbers[usize::from(*len)] = number;
                *len += 1;
            }
            SmallList::Few { numbers, .. } => {
                let mut many = Vec::with_capacity(2 * FEW + 2);
                many.extend_from_slice(numbers);
                many.push(number);
                *self = SmallList::Many(many);
            }
            SmallList::Many(numbers) => numbers.push(number),
        }
    }

    /// Removes the number at a place, which the last one takes.
    pub(crate) fn swap_remove(&mut self, place: usize) {
        match self {
            SmallList::Few { len, numbers } => {
                *len -= 1;
                numbers[place] = numbers[usize::from(*len)];
            }
            SmallList::Many(numbers) => {
                numbers.swap_remove(place);
            }
        }
    }

    /// Bytes that it owns elsewhere.
    pub(crate) fn memory_usage(&self) -> usize {
        match self {
            SmallList::Few { .. } => 0,
            SmallList::Many(numbers) => numbers.capacity() * size_of::<u32>(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_and_shrinks() {
        let mut list = SmallList::default();
        (0..8).for_each(|number| list.push(number));
        assert_eq!(list.as_slice(), [0, 1, 2, 3, 4, 5, 6, 7]);
        list.swap_remove(1);
        assert_eq!(list.as_slice(), [0, 7, 2, 3, 4, 5, 6]);
        let mut few = SmallList::default();
        (0..3).for_each(|number| few.push(number));
        few.swap_remove(2);
        few.push(5);
        few.swap_remove(0);
        assert_eq!(few.as_slice(), [5, 1]);
        assert_eq!(size_of::<SmallList>(), size_of::<Vec<u32>>());
    }
}
