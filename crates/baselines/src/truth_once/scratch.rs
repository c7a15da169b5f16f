//! What matching writes while it runs.

/// Buffers that are used again for each event.
///
/// Everything that must be fresh for each event carries the number of the event it was written for, so that nothing is
/// cleared in between: this is how counts and truths are "restored".
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    event: u32,
    /// By predicate: the event it was tested for, doubled, plus one if it was true.
    truths: Vec<u32>,
    /// By attribute: the event it was seen in, and its place among the readings of that event.
    attributes: Vec<(u32, u32)>,
    /// By subscription: the event that reported it.
    reported: Vec<u32>,
}

impl Scratch {
    /// Events have 31 bits here, to leave one for the truth; then the numbers begin anew.
    const LAST_EVENT: u32 = u32::MAX >> 1;

    /// Starts an event on an engine with at most so many predicates, attributes, and subscriptions.
    pub(crate) fn begin(&mut self, predicates: usize, attributes: usize, reported: usize) {
        if self.event == Self::LAST_EVENT {
            self.truths.clear();
            self.attributes.clear();
            self.reported.clear();
            self.event = 0;
        }
        self.event += 1;
        grow(&mut self.truths, predicates);
        grow(&mut self.attributes, attributes);
        grow(&mut self.reported, reported);
    }

    pub(crate) fn set_reading(&mut self, attribute: u32, place: usize) {
        self.attributes[attribute as usize] = (self.event, place as u32);
    }

    /// The place of the attribute's reading, if the event has the attribute.
    pub(crate) fn reading(&self, attribute: u32) -> Option<usize> {
        let (event, place) = self.attributes[attribute as usize];
        (event == self.event).then_some(place as usize)
    }

    /// The truth of a predicate: found by `test` when the event first asks for it, remembered from then on.
    pub(crate) fn truth(&mut self, predicate: u32, test: impl FnOnce(&Scratch) -> bool) -> bool {
        let known = self.truths[predicate as usize];
        if known >> 1 == self.event {
            return known & 1 == 1;
        }
        let truth = test(self);
        self.truths[predicate as usize] = self.event << 1 | u32::from(truth);
        truth
    }

    /// Whether this is the first report of the number for this event.
    pub(crate) fn report(&mut self, number: u32) -> bool {
        std::mem::replace(&mut self.reported[number as usize], self.event) != self.event
    }
}

fn grow<T: Clone + Default>(buffer: &mut Vec<T>, length: usize) {
    if buffer.len() < length {
        buffer.resize(length, T::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_an_earlier_event_survives_the_wrap_of_event_numbers() {
        let mut scratch = Scratch::default();
        // The second round has the number of the first again.
        for truth in [false, true] {
            scratch.begin(1, 1, 1);
            assert_eq!(scratch.event, 1);
            assert_eq!(scratch.reading(0), None);
            assert_eq!(scratch.truth(0, |_| truth), truth);
            assert_eq!(scratch.truth(0, |_| !truth), truth, "found once");
            assert!(scratch.report(0) && !scratch.report(0));
            scratch.set_reading(0, 7);
            assert_eq!(scratch.reading(0), Some(7));
            scratch.event = Scratch::LAST_EVENT;
        }
    }
}
