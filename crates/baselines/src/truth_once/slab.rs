//! Numbered places that are used again.

/// Values under small dense numbers; the number of a removed value goes to a later one.
///
/// Takes as many places as it ever held values at once. An engine that becomes empty starts anew, so that memory returns.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    places: Vec<Option<T>>,
    vacant: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { places: Vec::new(), vacant: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(number) = self.vacant.pop() {
            self.places[number as usize] = Some(value);
            return number;
        }
        let number = u32::try_from(self.places.len()).expect("fewer than 2^32 values fit into memory");
        self.places.push(Some(value));
        number
    }

    pub(crate) fn remove(&mut self, number: u32) -> T {
        self.vacant.push(number);
        self.places[number as usize].take().expect("the number is in use")
    }

    /// How many numbers were ever in use at once: every number is smaller.
    pub(crate) fn bound(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.vacant.len()
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.places.iter().flatten()
    }

    /// Bytes of the slab itself, without what its values own.
    pub(crate) fn memory_usage(&self) -> usize {
        self.places.capacity() * size_of::<Option<T>>() + self.vacant.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
impl<T> Slab<T> {
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.places[number as usize].as_ref()
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, number: u32) -> &T {
        self.places[number as usize].as_ref().expect("the number is in use")
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, number: u32) -> &mut T {
        self.places[number as usize].as_mut().expect("the number is in use")
    }
}
